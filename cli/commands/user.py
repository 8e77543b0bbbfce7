"""`./todo user`: accounts with passwords. The backend's command does the work, and asks for passwords."""

import argparse
import tempfile

from cli import terminal
from cli.arguments import Commands, add_command, add_data_dir, user
from cli.commands import user_adopt, user_data
from cli.database import postgres
from cli.errors import CliError
from cli.services import running_settings, service_command

_ACTIONS = {
    "add": "make an account, with a password that you type",
    "list": "show all accounts, and when each was last used to sign in",
    "password": "set another password, which ends all sessions and tokens of the user",
    "disable": "end all sessions of a user, who cannot sign in any more",
    "enable": "let a user sign in again",
    "remove": "delete an account, and all tasks, conversations and files of its user",
    "setup": "print an address at which you make the first account on the page",
    "log": "show sign-ins, and what else happened to accounts, the newest last",
}


def add(commands: Commands) -> None:
    parser = add_command(
        commands,
        "user",
        run,
        "make, list and change the accounts of AUTH_MODE=password",
        "Makes, lists and changes the accounts with which users sign in if AUTH_MODE is password.",
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    for name, does in _ACTIONS.items():
        action = actions.add_parser(name, help=does, description=f"{does.capitalize()}.", allow_abbrev=False)
        add_data_dir(action)
        if name in ("add", "password"):
            action.add_argument("--stdin", action="store_true", help="read the password from standard input")
        if name == "remove":
            action.add_argument("--yes", action="store_true", help="do not ask for confirmation")
        if name not in ("list", "setup"):
            options = {"nargs": "?", "default": None} if name == "log" else {}
            action.add_argument("name", type=user, metavar="NAME", help="the name of the user", **options)
    user_adopt.add_adopt(actions)


def run(arguments: argparse.Namespace) -> int:
    if arguments.action == "remove":
        return _remove(arguments)
    options = ["--stdin"] if getattr(arguments, "stdin", False) else []
    # After `--`, a name may begin with a hyphen, and is then said to be none.
    names = ["--", arguments.name] if getattr(arguments, "name", None) is not None else []
    return service_command.run_with_database(arguments.data_dir, "backend", "user", arguments.action, *options, *names)


def _remove(arguments: argparse.Namespace) -> int:
    name, directory = arguments.name, arguments.data_dir
    if not arguments.yes:
        terminal.confirm(
            f"Delete the account {name} with all tasks, conversations and files for good?",
            without_terminal="There is no terminal to ask for confirmation. Add --yes to delete the account "
            f"{name} with all data for good.",
            rejected="Nothing was deleted.",
        )
    loaded = running_settings.load(directory).variables
    with postgres.owner_environment(loaded, directory) as variables, tempfile.TemporaryFile() as output:
        # The backend goes first: it ends sessions and answers, which would add tasks. It prints the id of the user.
        service_command.run("backend", "user", "remove", "--", name, variables=variables, stdout=output)
        output.seek(0)
        user_id = output.read().decode().strip()
        try:
            user_data.forget_in(["mcp_server", "workspace"], user_id, variables, directory, output)
        except CliError as error:
            raise CliError(f"{error} The account is gone; ./todo forget --user {user_id} deletes the rest.") from None
    terminal.say(f"Removed the account {name} and all its data.")
    return 0
