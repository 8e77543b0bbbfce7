"""Helpers for the commands of `python -m SERVICE` and `./todo`.

Standard library only, because `./todo` imports it before the packages are installed.
"""

import argparse
import importlib
import os
import pkgutil
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from typing import NoReturn, TextIO

EXIT_NOTHING_STORED = 3
"""The exit status of a command about a user of whom nothing is stored."""
EXIT_INCOMPLETE = 4
"""The exit status of a command that could not do all of its work, and has printed what is left."""
EXIT_READER_GONE = 141
"""The exit status of a command whose output nobody reads to its end, as shells report the end by SIGPIPE."""
MAX_DAYS = 36_500
MAX_TOKEN_DAYS = 3_650
"""How long a personal access token may be valid."""
_GAP = "  "
_MIN_WIDTH = 8  # characters of a text in a table


def run_command(service: str, arguments: Sequence[str]) -> None:
    """Imports and runs a command, which is a module of `commands`, or starts the service if there are no arguments."""
    infos = pkgutil.iter_modules(importlib.import_module(f"{service}.commands").__path__)
    modules = {info.name.rstrip("_"): info.name for info in infos}  # `import_`: a module cannot be named as a keyword
    names = [*modules]
    match arguments:
        case []:
            importlib.import_module(f"{service}.process").main()
        case ["check"]:
            importlib.import_module(f"{service}.commands.check").run()
        case [name, *rest] if name in names and name != "check":
            run_to_end(importlib.import_module(f"{service}.commands.{modules[name]}").run, rest)
        case [unknown, *_]:
            exit_unknown_command(service, unknown, names)


def exit_unknown_command(service: str, name: str, names: Sequence[str]) -> NoReturn:
    choices = f"{', '.join(names[:-1])} or {names[-1]}"
    sys.exit(f"{service} has no command {name}. Use {choices}, or no command to start the service.")


def run_to_end(command: Callable[[Sequence[str]], None], arguments: Sequence[str]) -> None:
    """Runs a command until all of its output is written; if that fails, the process exits with a sentence."""
    try:
        command(arguments)
        sys.stdout.flush()
    except OSError as error:
        sys.exit(discard_output(error) or EXIT_READER_GONE)


def discard_output(error: OSError) -> str:
    """Returns why output could not be written, as a sentence; an empty one if its reader has gone, as with `head`."""
    discard(sys.stdout)
    return "" if isinstance(error, BrokenPipeError) else f"The output cannot be written: {error.strerror}."


def discard(stream: TextIO) -> None:
    """Lets what is written from now on go nowhere: the interpreter would fail again when it flushes it at its end."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, stream.fileno())
    os.close(null)


def parse_user(arguments: Sequence[str], *, name: str, description: str) -> str:
    parser = argparse.ArgumentParser(prog=name, description=description)
    parser.add_argument("--user", required=True, help="the `sub` in the user's tokens; `local` with AUTH_MODE=none")
    return parser.parse_args(arguments).user


def exit_nothing_stored(user: object) -> NoReturn:
    sys.stderr.write(f"There is no data of {user}. Check the name.\n")
    sys.exit(EXIT_NOTHING_STORED)


def parse_days(text: str, most: int = MAX_DAYS) -> int:
    if not (text.isascii() and text.isdigit() and 0 < int(text) <= most):
        raise argparse.ArgumentTypeError(f"{text} is not a number of days from 1 to {most}")
    return int(text)


def parse_token_days(text: str) -> int:
    return parse_days(text, MAX_TOKEN_DAYS)


def escape_unprintable(text: str) -> str:
    """Replaces what a terminal would hide or obey, such as escape sequences, by `\\x1b` and the like."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def format_table(rows: Sequence[Sequence[str]], *, left: Sequence[int]) -> Iterator[str]:
    """Yields the lines of a table that fits the terminal, or 80 characters where there is none.

    Texts in the columns `left` are broken where they have to; others are numbers and headings.
    """
    columns = [*zip(*rows, strict=True)]
    widths = [max(map(len, column)) for column in columns]
    words = [max(len(word) for text in column for word in text.split() or [""]) for column in columns]
    least = [min(width, _MIN_WIDTH) if column in left else width for column, width in enumerate(words)]
    excess = sum(widths) + len(_GAP) * (len(widths) - 1) - shutil.get_terminal_size().columns
    while excess > 0 and (wide := [column for column, width in enumerate(widths) if width > least[column]]):
        widths[max(wide, key=lambda column: (column not in left, widths[column]))] -= 1  # headings first
        excess -= 1
    for row in rows:
        cells = [textwrap.wrap(text, max(width, 1)) for text, width in zip(row, widths, strict=True)]
        for line in range(max(map(len, cells))):
            texts = [cell[line] if line < len(cell) else "" for cell in cells]
            padded = (
                text.ljust(width) if column in left else text.rjust(width)
                for column, (text, width) in enumerate(zip(texts, widths, strict=True))
            )
            yield _GAP.join(padded).rstrip()
