"""How `./todo` and its commands read their arguments. Standard library only, as it answers before packages."""

import argparse
import math
import re
import signal
import sys
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn, TypeAlias, TypeVar
from urllib.parse import urlsplit

from cli import data_dir, terminal
from cli.errors import CliError, describe_os_error

USAGE_STATUS = 2
N = TypeVar("N", int, float)


class UsageError(CliError):
    status = USAGE_STATUS


class Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        terminal.error(f"{message} (see {self.prog.replace('todo', './todo', 1)} --help)")
        sys.exit(USAGE_STATUS)


Commands: TypeAlias = "argparse._SubParsersAction[Parser]"


def add_command(
    commands: Commands,
    name: str,
    run: Callable[[argparse.Namespace], int],
    short: str,
    description: str,
    *,
    has_data_dir: bool = True,
    **options: Any,
) -> Parser:
    """Adds a command, which `run` carries out; `short` is its line in the list of commands."""
    parser = commands.add_parser(name, help=short, description=description, allow_abbrev=False, **options)
    parser.set_defaults(run=run)
    if has_data_dir:
        add_data_dir(parser, default=data_dir.default())
    return parser


def add_data_dir(parser: argparse.ArgumentParser, *, default: Path | str = argparse.SUPPRESS) -> None:
    """Without a default, the option may also stand before the action that `parser` reads."""
    parser.add_argument(
        "--data-dir",
        type=_parse_directory,
        default=default,
        metavar="DIR",
        help=f"database and logs (here: {data_dir.default()}; .data in the checkout, or a directory of "
        f"{data_dir.ROOT_HOME} for root when others cannot enter the checkout)",
    )


def add_user(parser: Parser) -> None:
    whose = "the `sub` in the user's tokens; local with AUTH_MODE=none"
    parser.add_argument("--user", type=user, required=True, metavar="NAME", help=whose)


def run_command(run: Callable[[], int]) -> int:
    """Returns the exit status; an error is a sentence on stderr."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:  # until the imports are done, see `cli.entry`
        signal.signal(signal.SIGINT, signal.default_int_handler)
    terminal.prepare_streams()
    try:
        try:
            return run()
        finally:
            terminal.flush()
    except CliError as error:
        if sentence := str(error):
            terminal.error(sentence)
        return error.status
    except OSError as error:
        terminal.error(describe_os_error(error))
        return 1
    except KeyboardInterrupt:
        return 130


def user(text: str) -> str:
    invisible = ("Cc", "Cs", "Zl", "Zp")  # control characters, line ends, halves of a pair
    if not text.strip() or any(unicodedata.category(character) in invisible for character in text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a valid user name")
    return text


def conversation(text: str) -> str:
    is_name = re.fullmatch(r"[A-Za-z0-9._-]{1,100}", text) and text.strip(".")
    if not is_name or text == "openapi.json":  # there the server describes its API
        raise argparse.ArgumentTypeError(f"{text!r} is not a valid id or name of a conversation")
    return text


def _parse_digits(text: str) -> int:
    """Reads digits only, unlike `int`, which also accepts "8_000", "+80" and digits of other scripts."""
    if not re.fullmatch("[0-9]+", text):
        raise ValueError
    return int(text)


def _parse_number(kind: Callable[[str], N], is_valid: Callable[[N], bool], what: str) -> Callable[[str], N]:
    def parse(text: str) -> N:
        try:
            number = kind(text)
        except ValueError:
            number = None
        if number is None or not is_valid(number):
            raise argparse.ArgumentTypeError(f"{text} is not {what}")
        return number

    return parse


port = _parse_number(_parse_digits, lambda number: 0 < number < 65_536, "a port from 1 to 65535")
count = _parse_number(_parse_digits, lambda number: 0 < number <= 100, "a whole number from 1 to 100")
amount = _parse_number(float, lambda number: 0 < number < math.inf, "a number above 0")
temperature = _parse_number(float, lambda number: 0 <= number <= 2, "a number from 0 to 2")


def parse_existing_directory(text: str) -> Path:
    path = Path(text).resolve()
    if not path.is_dir():
        raise argparse.ArgumentTypeError(f"{text} is not a directory")
    return path


def url(text: str) -> str:
    try:
        parts = urlsplit(text)
        good = parts.scheme in ("http", "https") and parts.hostname and not parts.query and not parts.fragment
        _ = parts.port
    except ValueError:
        good = False
    if not good:
        raise argparse.ArgumentTypeError(f"{text} is not the address of the page, such as http://localhost:8000")
    return text.rstrip("/")


def _parse_directory(text: str) -> Path:
    if not text:
        raise argparse.ArgumentTypeError("it is empty")
    return Path(text).resolve()
