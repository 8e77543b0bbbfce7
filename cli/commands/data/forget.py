import argparse

from cli import data_dir, terminal
from cli.arguments import Commands, add_command, add_user
from cli.database import postgres
from cli.services import environment, service_command
from cli.services.service_command import NoStoredData

LOCAL = "local"  # the user of AUTH_MODE=none


def add(commands: Commands) -> None:
    parser = add_command(
        commands,
        "forget",
        run,
        "delete all stored data of a user",
        "Stops a user's running answers, then deletes their tasks, changes, conversations, files and usage for good.",
    )
    add_user(parser)
    parser.add_argument("--yes", action="store_true", help="do not ask for confirmation")


def run(arguments: argparse.Namespace) -> int:
    """Deletes everything. The backend goes first: a run that continued would add tasks."""
    user, directory = arguments.user, arguments.data_dir
    if not arguments.yes:
        terminal.confirm(
            f"Delete all tasks, conversations and files of {user} for good?",
            without_terminal="There is no terminal to ask for confirmation. Add --yes to delete all data of "
            f"{user} for good.",
            rejected="Nothing was deleted.",
        )
    with postgres.owner_environment(environment.load(), directory) as variables:
        with_files = service_command.with_workspace(variables, directory)
        modules = ["backend", "mcp_server", *(["workspace"] if with_files else [])]
        found = [
            service_command.run_for_user(module, "forget", user, variables=with_files or variables)
            for module in modules
        ]
        if user == LOCAL:
            data_dir.chat_history(directory).unlink(missing_ok=True)
        if not any(found):
            raise NoStoredData(user)
    return 0
