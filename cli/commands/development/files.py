"""What benchmark and evaluation write, and read again."""

import contextlib
import json
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from cli.errors import CliError


def read(file: Path, fields: Collection[str], *, what: str, command: str) -> dict[str, Any]:
    """What `./todo COMMAND --json FILE` wrote, where it has these fields."""
    try:
        found = json.loads(file.read_text())
    except (OSError, ValueError):
        found = None
    if not isinstance(found, dict) or not set(fields) <= found.keys():
        raise CliError(f"{file} does not contain {what}. Create such a file with ./todo {command} --json FILE.")
    return found


def write(file: Path, text: str) -> None:
    """Whole, or not at all."""
    with _written(file) as fresh:
        fresh.write_text(text)
        fresh.replace(file)


def check(file: Path | None) -> None:
    """Before what takes minutes: whether its end could be written there."""
    if file is not None:
        with _written(file) as fresh:
            fresh.touch()
            fresh.unlink()


@contextlib.contextmanager
def _written(file: Path) -> Iterator[Path]:
    try:
        yield file.with_name(f"{file.name}.new")
    except OSError as error:
        raise CliError(f"{file} cannot be written: {error.strerror}.") from error
