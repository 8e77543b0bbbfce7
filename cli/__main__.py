"""`./todo` with the packages of the interpreter that runs it; `cli.entry` installs them first."""

import argparse
import sys
from collections.abc import Sequence

from cli import terminal
from cli.arguments import USAGE_STATUS, Parser, UsageError, run_command
from cli.commands import backup, chat, control, development, link, services, up, user, user_data
from common import VERSION

# Imports that take long are in the functions of a command, so that none waits for another's.
COMMANDS = (up, control, chat, link, services, user, user_data, backup, development)


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Ends the process if the arguments are wrong. `more` are those that another program reads."""
    arguments = sys.argv[1:] if arguments is None else arguments
    parser = Parser(prog="todo", description="A to-do assistant you run yourself.", allow_abbrev=False)
    parser.add_argument("--version", action="version", version=VERSION, help="show the version")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    for command in COMMANDS:
        command.add(commands)
    if wrong := next((one for one in arguments if not terminal.is_text(one)), None):
        raise UsageError(f"An argument is not UTF-8 text: {wrong}. Type it in a UTF-8 terminal, or rename the file.")
    parsed, rest = parser.parse_known_args(arguments)
    if parsed.command is None:
        parser.print_help(sys.stderr)
        sys.exit(USAGE_STATUS)
    if rest and not getattr(parsed, "takes_more", False):
        commands.choices[parsed.command].error(f"unrecognized arguments: {' '.join(rest)}")
    parsed.more = rest
    return parsed


def main() -> int:
    return run_command(_run)


def _run() -> int:
    arguments = parse()
    return arguments.run(arguments)


if __name__ == "__main__":
    sys.exit(main())
