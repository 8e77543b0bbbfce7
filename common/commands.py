"""What `python -m SERVICE` and `./todo` share of commands. Standard library only: `./todo` answers before packages."""

import argparse
import gc
import importlib
import pkgutil
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import NoReturn

NOTHING = 3
"""The exit status of a command that found nothing of the person it was given."""
PARTLY = 4
"""Of a command that could not do all of its work, and says what is left."""
MOST_DAYS = 36_500


def main(service: str, arguments: Sequence[str], *, room: str = "commands") -> None:
    """Serve, or run a command: a module of that room of the service.

    Each is imported only when it runs: most commands need little of what the service does.
    """
    found = pkgutil.iter_modules(importlib.import_module(f"{service}.{room}").__path__)
    modules = {module.name.rstrip("_"): module.name for module in found}  # a module cannot be named as Python's words
    names = [*modules]
    match arguments:
        case []:
            _imported(f"{service}.process").main()
        case ["check"]:
            _imported(f"{service}.{room}.check").run()
        case [name, *rest] if name in names and name != "check":
            _imported(f"{service}.{room}.{modules[name]}").run(rest)
        case [unknown, *_]:
            known = f"{', '.join(names[:-1])} or {names[-1]}"
            sys.exit(f"{service} has no command {unknown}. Use {known}, or no command to start the service.")


def _imported(name: str) -> ModuleType:
    """A module, without looking for garbage meanwhile: imports make next to none, and it took a fifth of their time."""
    gc.disable()
    try:
        return importlib.import_module(name)
    finally:
        gc.freeze()
        gc.enable()


def person(arguments: Sequence[str], *, name: str, description: str) -> str:
    """Whom the command of this name is about: `--user`, its one argument."""
    parser = argparse.ArgumentParser(prog=name, description=description)
    parser.add_argument("--user", required=True, help="the `sub` in the user's tokens; `local` with AUTH_MODE=none")
    return parser.parse_args(arguments).user


def nothing_stored(user: object) -> NoReturn:
    sys.stderr.write(f"There is no data of {user}. Check the name.\n")
    sys.exit(NOTHING)


def days(text: str) -> int:
    """A number of days that argparse was given."""
    if not (text.isascii() and text.isdigit() and 0 < int(text) <= MOST_DAYS):
        raise argparse.ArgumentTypeError(f"{text} is not a number of days from 1 to {MOST_DAYS}")
    return int(text)


def printable(text: str) -> str:
    """Spells out what a terminal would hide or obey, such as escape sequences."""
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in text)
