"""`./todo user adopt`: gives all that is stored of a user to another one, from AUTH_MODE=none to accounts."""

import argparse
import tempfile

from cli import terminal
from cli.arguments import Commands, add_command, add_data_dir, user
from cli.database import postgres
from cli.services import running_settings, service_command
from cli.services.service_command import NoStoredData
from common.commands import EXIT_NOTHING_STORED


def add_adopt(actions: Commands) -> None:
    parser = add_command(
        actions,
        "adopt",
        run_adopt,
        "give all that is stored of a user to another one",
        "Gives the tasks, conversations, files and everything else of the user OLD to NEW, who must not have any: from "
        "AUTH_MODE=none (OLD is local) to an account, or from one account to another. Running answers of OLD are "
        "stopped, and OLD is signed out everywhere and has nothing then. If it is interrupted, repeat it.",
        has_data_dir=False,
    )
    add_data_dir(parser)
    parser.add_argument("old", type=user, metavar="OLD", help="whose data; local with AUTH_MODE=none")
    parser.add_argument("new", type=user, metavar="NEW", help="who gets it: an account, or any user with AUTH_MODE=jwt")
    parser.add_argument("--yes", action="store_true", help="do not ask for confirmation")


def run_adopt(arguments: argparse.Namespace) -> int:
    """Moves the rows in one transaction, and then the files of the conversations that the first command prints."""
    old, new, directory = arguments.old, arguments.new, arguments.data_dir
    if not arguments.yes:
        terminal.confirm(
            f"Give all tasks, conversations and files of {old} to {new}?",
            without_terminal=f"There is no terminal to ask for confirmation. Add --yes to give all data of {old} to "
            f"{new}.",
            rejected="Nothing was changed.",
        )
    settings = running_settings.load(directory).variables
    with postgres.owner_environment(settings, directory) as variables, tempfile.TemporaryFile() as adopted:
        users = ("--", old, new)
        status = service_command.run(
            "backend", "adopt", *users, variables=variables, accepted=[EXIT_NOTHING_STORED], stdout=adopted
        )
        if status == EXIT_NOTHING_STORED:
            raise NoStoredData(old)
        if with_files := service_command.with_workspace(variables, directory):
            adopted.seek(0)
            service_command.run("workspace", "adopt", variables=with_files, stdin=adopted)
    return 0
