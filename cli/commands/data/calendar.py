import argparse

from cli.arguments import Commands, add_command, add_user, port
from cli.services import environment, running, service_command


def add(commands: Commands) -> None:
    parser = add_command(
        commands,
        "calendar",
        run,
        "make a calendar address for a user's tasks that have a date",
        "Prints a new address at which calendar programs can read a user's tasks that have a date. Older addresses "
        "stop working. It is not shown again.",
    )
    add_user(parser)
    parser.add_argument("--revoke", action="store_true", help="make the current address stop working")
    default = "port of the page, if no BACKEND_URL is set (that of the running ./todo up, else BACKEND_PORT, else 8000)"
    parser.add_argument("--port", type=port, help=default)


def run(arguments: argparse.Namespace) -> int:
    """Prints a calendar's address at the `./todo up` that runs there, else at the one that would be started."""
    from cli.database import local_database

    directory = arguments.data_dir
    variables = environment.load()
    state = running.read_state(directory) or {}
    variables.setdefault("AUTH_MODE", state.get("auth_mode", "none"))
    variables["BACKEND_PORT"] = str(arguments.port or environment.port(variables, "BACKEND_PORT", 8000))
    if arguments.port is None and "backend_url" in state:
        variables["BACKEND_URL"] = state["backend_url"]
    options = [f"--user={arguments.user}", *(["--revoke"] if arguments.revoke else [])]
    with local_database.reached(variables, directory) as reaching:
        return service_command.run("backend", "calendar", *options, variables=reaching)
