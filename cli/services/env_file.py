"""Reads `.env`, and finds the lines of settings that are wrong."""

import io
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from cli.data_dir import CHECKOUT
from cli.errors import SettingsError
from common.child_environment import is_known

if TYPE_CHECKING:
    from dotenv.parser import Binding

FILE = CHECKOUT / ".env"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_NAME_IN_SENTENCE = re.compile(r"\b[A-Z][A-Z0-9_]+\b")
_UNREADABLE = "This line cannot be read. Write NAME=value, and close a quote on the line that opens it."
_HEADING = "Correct these settings and try again:"


class Entry(NamedTuple):
    value: str
    line: int
    replaced_line: int | None = None
    """The line before it that gives the same name another value."""


def read(file: Path = FILE) -> dict[str, Entry]:
    """Returns the entries of a file, which need not be there; of several with one name, the last one counts.

    A `$` is read as it is written. Raises `SettingsError` with all lines that cannot be read; it quotes none, because
    they may contain secrets.
    """
    entries: dict[str, Entry] = {}
    problems: list[str] = []
    for binding, line in _parse(_read_text(file)):
        name, value = binding.key, binding.value
        if name is not None and is_known(name.upper()):  # the services read small letters, too
            name = name.upper()
        if binding.error or (name is not None and not _is_usable(name, value, binding.original.string)):
            problems.append(f"{file}:{line}: {_UNREADABLE}")
        elif name is not None and value is not None:
            earlier = entries.get(name)
            entries[name] = Entry(value, line, earlier.line if earlier and earlier.value not in ("", value) else None)
    if problems:
        raise create_error(problems)
    return entries


def create_error(problems: Iterable[str]) -> SettingsError:
    return SettingsError("\n  ".join([_HEADING, *problems]))


def add_origins(sentences: Iterable[str]) -> Iterator[str]:
    """Puts before each sentence where the settings that it names have their values: a line of `.env`, or the
    environment."""
    entries = read()
    for sentence in sentences:
        found = (_find_origin(name, entries) for name in _NAME_IN_SENTENCE.findall(sentence) if is_known(name))
        origins = ", ".join(dict.fromkeys(filter(None, found)))
        yield f"{origins}: {sentence}" if origins else sentence


def _find_origin(name: str, entries: Mapping[str, Entry]) -> str | None:
    """`./todo eval` has the entries in its environment."""
    entry = entries.get(name)
    if name in os.environ and (entry is None or os.environ[name] != entry.value):
        return "environment" if os.environ[name] else None
    return f"{FILE}:{entry.line}" if entry and entry.value else None


def _read_text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        if file.is_symlink():
            raise SettingsError(f"{file} links to a file that is not there: {file.readlink()}.") from None
        return ""
    except UnicodeDecodeError:
        raise SettingsError(f"{file} is not UTF-8 text. Save it as UTF-8.") from None
    except OSError as error:
        raise SettingsError(f"{file} cannot be read: {error.strerror}.") from error


def _parse(text: str) -> "Iterator[tuple[Binding, int]]":
    """Yields each entry with the number of its line; that of the parser is the line after the entry before."""
    if not text:
        return
    from dotenv.parser import parse_stream

    for binding in parse_stream(io.StringIO(text)):
        original = binding.original.string
        yield binding, binding.original.line + original[: len(original) - len(original.lstrip())].count("\n")


def _is_usable(name: str, value: str | None, original: str) -> bool:
    """Whether it is a name and a value, and no setting has taken lines to the next quote for its value."""
    if value is None or "\0" in value or not _NAME.fullmatch(name):
        return False
    return "\n" not in original.strip() or not is_known(name)
