"""How a command is described: in one way for all."""

import argparse
import sys
from pathlib import Path
from typing import Any, NoReturn, TypeAlias

from cli import data_dir, terminal

USAGE_STATUS = 2


class Parser(argparse.ArgumentParser):
    """One sentence about what is wrong, which names the help."""

    def error(self, message: str) -> NoReturn:
        terminal.error(f"{message} (see {self.prog.replace('todo', './todo', 1)} --help)")
        sys.exit(USAGE_STATUS)


Commands: TypeAlias = "argparse._SubParsersAction[Parser]"


def add(commands: Commands, name: str, short: str, description: str, **more: Any) -> Parser:
    """A command: `short` is what the list of all says of it."""
    return commands.add_parser(name, help=short, description=description, allow_abbrev=False, **more)


def add_data_dir(*parsers: Parser) -> None:
    for parser in parsers:
        parser.add_argument(
            "--data-dir",
            type=_directory,
            default=data_dir.default(),
            metavar="DIR",
            help="database and logs (here: %(default)s; .data in the checkout, or a directory of "
            f"{data_dir.ROOT_HOME} for root when others cannot enter the checkout)",
        )


def _directory(text: str) -> Path:
    if not text:
        raise argparse.ArgumentTypeError("it is empty")
    return Path(text)
