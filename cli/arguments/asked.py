"""What `./todo` is asked."""

import argparse
import sys
from collections.abc import Sequence

from cli import data_dir, terminal
from cli.arguments import data, development, running, talking
from cli.arguments.command import USAGE_STATUS, Parser


class _Version(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        import tomllib

        terminal.say(tomllib.loads((data_dir.CHECKOUT / "pyproject.toml").read_text())["project"]["version"])
        parser.exit()


def parse(arguments: Sequence[str] | None = None) -> tuple[argparse.Namespace, list[str]]:
    """What was asked for, and for `test` what it leaves to pytest; ends the process when that cannot be."""
    parser = _parser()
    given, rest = parser.parse_known_args(arguments)
    if given.command is None:
        parser.print_help(sys.stderr)
        sys.exit(USAGE_STATUS)
    if wrong := talking.check(given) or data.check(given) or development.check(given):
        parser.error(wrong)
    if rest and given.command != "test":
        terminal.error(f"unrecognized arguments: {' '.join(rest)} (see ./todo {given.command} --help)")
        sys.exit(USAGE_STATUS)
    return given, rest


def _parser() -> Parser:
    parser = Parser(prog="todo", description="A to-do assistant you run yourself.", allow_abbrev=False)
    parser.add_argument("--version", action=_Version, nargs=0, help="show the version")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    for room in (running, talking, data, development):
        room.add_all(commands)
    return parser
