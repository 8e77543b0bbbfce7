import argparse
import sys

from cli import data_dir, terminal
from cli.arguments import Commands, add_command, add_user
from cli.errors import CliError
from cli.services import environment, service_command

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
    from cli.database import postgres

    user, directory = arguments.user, arguments.data_dir
    if not arguments.yes:
        _confirm(user)
    with postgres.owner_environment(environment.load(), directory) as variables:
        with_files = service_command.with_workspace(variables, directory)
        modules = ["backend", "mcp_server", *(["workspace"] if with_files else [])]
        processes = (service_command.start(module, "forget", user, with_files or variables) for module in modules)
        found = [service_command.finish(process) for process in processes]
        if user == LOCAL:
            data_dir.chat_history(directory).unlink(missing_ok=True)
        if not any(found):
            raise service_command.nothing_stored(user)
    return 0


def _confirm(user: str) -> None:
    if not sys.stdin.isatty():
        raise CliError(
            f"There is no terminal to ask for confirmation. Add --yes to delete all data of {user} for good."
        )
    answer = terminal.ask(f"Delete all tasks, conversations and files of {user} for good? [y/N] ")
    if answer.lower() not in ("y", "yes"):
        raise CliError("Nothing was deleted.")
