"""Helpers for the commands of `python -m SERVICE` and `./todo`.

Standard library only, because `./todo` imports it before the packages are installed.
"""

import argparse
import importlib
import pkgutil
import sys
from collections.abc import Sequence
from typing import NoReturn

EXIT_NOTHING_STORED = 3
"""The exit status of a command about a user of whom nothing is stored."""
EXIT_INCOMPLETE = 4
"""The exit status of a command that could not do all of its work, and has printed what is left."""
MAX_DAYS = 36_500


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
            importlib.import_module(f"{service}.commands.{modules[name]}").run(rest)
        case [unknown, *_]:
            exit_unknown_command(service, unknown, names)


def exit_unknown_command(service: str, name: str, names: Sequence[str]) -> NoReturn:
    choices = f"{', '.join(names[:-1])} or {names[-1]}"
    sys.exit(f"{service} has no command {name}. Use {choices}, or no command to start the service.")


def parse_user(arguments: Sequence[str], *, name: str, description: str) -> str:
    parser = argparse.ArgumentParser(prog=name, description=description)
    parser.add_argument("--user", required=True, help="the `sub` in the user's tokens; `local` with AUTH_MODE=none")
    return parser.parse_args(arguments).user


def exit_nothing_stored(user: object) -> NoReturn:
    sys.stderr.write(f"There is no data of {user}. Check the name.\n")
    sys.exit(EXIT_NOTHING_STORED)


def parse_days(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 0 < int(text) <= MAX_DAYS):
        raise argparse.ArgumentTypeError(f"{text} is not a number of days from 1 to {MAX_DAYS}")
    return int(text)


def escape_unprintable(text: str) -> str:
    """Replaces what a terminal would hide or obey, such as escape sequences, by `\\x1b` and the like."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
