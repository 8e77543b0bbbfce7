"""Commands that a service carries out: `python -m backend usage` and the like, with the settings of `./todo up`."""

import argparse

from cli import data_dir, terminal
from cli.arguments import Commands, add_command, add_data_dir, add_user, user
from cli.services import environment, running_settings, service_command
from common.commands import parse_days, parse_token_days
from common.scopes import TOKEN_SCOPES


def add(commands: Commands) -> None:
    add_command(
        commands,
        "migrate",
        run_migrate,
        "update the database schema",
        "Updates the schema of the database at MIGRATION_DATABASE_URL, else DATABASE_URL, else of the one in the data "
        "directory.",
    )
    _add_token(commands)
    models = add_command(
        commands,
        "models",
        run_models,
        "show the models of your providers",
        "Shows the models of each provider that has a key or runs on this machine, and the model that answers. Each "
        "provider receives only its own key.",
    )
    checks = "instead, test whether the model of each provider can call a tool"
    models.add_argument("--check", action="store_true", help=checks)
    _add_mcp(commands)
    _add_calendar(commands)
    usage = add_command(
        commands,
        "usage",
        run_usage,
        "show what the model was used for, by day, user and model",
        "Prints answers, requests to the model and tokens by day (UTC), user and model.",
    )
    usage.add_argument("--days", type=parse_days, default=30, help="how many days, including today (%(default)s)")
    usage.add_argument("--user", type=user, metavar="NAME", help="only this user")
    usage.add_argument("--today", action="store_true", help="instead, each user's tokens of today, and the limit")
    usage.add_argument("--json", action="store_true", help="print a JSON array instead of a table")


def _add_token(commands: Commands) -> None:
    parser = add_command(
        commands,
        "token",
        run_token,
        "make an access token for a program of a user",
        "Prints a personal access token, with which a program can do for a user what its scopes say. It is not shown "
        "again; the page lists and ends tokens.",
    )
    parser.add_argument("--user", type=user, required=True, metavar="NAME", help="whose program it is")
    parser.add_argument("--name", metavar="TEXT", help="what the token is for, as the page shows it")
    parser.add_argument(
        "--scope",
        action="append",
        choices=TOKEN_SCOPES,
        default=[],
        help="what it allows, once or several times (default: tasks)",
    )
    parser.add_argument("--days", type=parse_token_days, default=90, help="how long it is valid (%(default)s)")


def _add_mcp(commands: Commands) -> None:
    parser = add_command(
        commands,
        "mcp",
        run_mcp,
        "show other MCP servers, and approve their tools for the agents",
        "Shows the MCP servers of mcp.json and the descriptions of their tools, approves tools, or tests whether a "
        "server answers. Agents can use an approved tool until its description changes.",
    )
    parser.set_defaults(server=None, tools=[])
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    for name, does in (
        ("list", "show the servers and their tools"),
        ("approve", "approve tools of a server"),
        ("test", "test whether a server answers"),
    ):
        action = actions.add_parser(name, help=does, description=f"{does.capitalize()}.", allow_abbrev=False)
        add_data_dir(action)
        if name != "list":
            action.add_argument(
                "server", metavar="SERVER", help="its name in mcp.json; ./todo mcp list shows the names"
            )
        if name == "approve":
            action.add_argument("tools", nargs="*", metavar="TOOL", help="default: all tools of the server")


def _add_calendar(commands: Commands) -> None:
    parser = add_command(
        commands,
        "calendar",
        run_calendar,
        "make a calendar address for a user's tasks that have a date",
        "Prints a new address at which calendar programs can read a user's tasks that have a date. Older addresses "
        "stop working. It is not shown again.",
    )
    add_user(parser)
    parser.add_argument("--revoke", action="store_true", help="make the current address stop working")


def run_migrate(arguments: argparse.Namespace) -> int:
    return service_command.run_with_database(arguments.data_dir, "migrations", create=True)


def run_token(arguments: argparse.Namespace) -> int:
    variables = running_settings.load(arguments.data_dir).variables
    variables["MCP_URL"] = environment.get_mcp_url(variables, environment.port(variables, "MCP_PORT", 8001))
    if secret := data_dir.read_secret(arguments.data_dir, data_dir.TOKEN_SECRET):
        variables.setdefault("MCP_TOKEN_SECRET", secret)
    options = [f"--user={arguments.user}", f"--days={arguments.days}", *(f"--scope={each}" for each in arguments.scope)]
    options += [f"--name={arguments.name}"] if arguments.name else []
    if variables.get("AUTH_MODE", "none") != "none":
        return service_command.run_with_database(arguments.data_dir, "backend", "token", *options, variables=variables)
    status = service_command.run("backend", "token", *options, variables=variables)
    terminal.warn("There is no sign-in (AUTH_MODE=none): MCP clients need no token.")
    return status


def run_models(arguments: argparse.Namespace) -> int:
    from cli.services import ollama

    settings = running_settings.load(arguments.data_dir)
    terminal.say(settings.source)
    given = settings.variables
    variables, found = ollama.choose_model(given)
    options = ["--check"] if arguments.check else []
    if not ollama.is_wanted(given):
        # LLM_MODEL is another provider's then.
        found = ollama.find({name: value for name, value in given.items() if name != "LLM_MODEL"})
        options += ["--ollama", f"{found.url}/v1", found.model] if found and found.model else []
    if found and found.note:
        terminal.notice(found.note + ".")
    return service_command.run("backend", "models", *options, variables=variables)


def run_mcp(arguments: argparse.Namespace) -> int:
    action = [arguments.action, *filter(None, [arguments.server]), *arguments.tools]
    if arguments.action == "test":  # which takes no database
        variables = running_settings.load(arguments.data_dir).variables
        return service_command.run("backend", "mcp", *action, variables=variables)
    return service_command.run_with_database(arguments.data_dir, "backend", "mcp", *action)


def run_calendar(arguments: argparse.Namespace) -> int:
    options = [f"--user={arguments.user}", *(["--revoke"] if arguments.revoke else [])]
    return service_command.run_with_database(arguments.data_dir, "backend", "calendar", *options)


def run_usage(arguments: argparse.Namespace) -> int:
    settings = running_settings.load(arguments.data_dir)
    options = [f"--days={arguments.days}"]
    options += [f"--user={arguments.user}"] if arguments.user is not None else []
    options += ["--today"] if arguments.today else []
    options += ["--json"] if arguments.json else []
    variables = settings.variables
    service_command.run_with_database(arguments.data_dir, "backend", "usage", *options, variables=variables)
    terminal.notice(settings.source)
    return 0
