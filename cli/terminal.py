"""The only place of the command line that writes to the terminal."""

import contextlib
import os
import re
import shutil
import sys
import time
from typing import BinaryIO, Self, TextIO

from cli.errors import CliError

BOLD, GREEN, RED, DIM = "1", "32", "31", "2"
QUIET_SECONDS = 5

# Control characters except newline and tab, Unicode's line ends, marks of text direction, halves of surrogate pairs.
_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def clean(text: str) -> str:
    """Removes what a terminal would obey, such as escape sequences."""
    return _UNSAFE.sub("", text)


def say(text: str = "") -> None:
    _write(sys.stdout, clean(text))


def notice(text: str) -> None:
    _write(sys.stderr, clean(text))


def notice_rendered(line: str) -> None:
    _write(sys.stderr, line)


def heading(text: str) -> None:
    _write(sys.stdout, _style(sys.stdout, BOLD, text))


def confirm(question: str, *, without_terminal: str, rejected: str) -> None:
    """Asks whether to go on. Raises `CliError` with one of the two sentences if the user does not say so."""
    if not sys.stdin.isatty():
        raise CliError(without_terminal)
    _write(sys.stdout, f"{question} [y/N] ", end="")
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise CliError(rejected)


def copy(document: BinaryIO) -> None:
    with contextlib.suppress(BrokenPipeError):
        shutil.copyfileobj(document, sys.stdout.buffer)
        sys.stdout.buffer.flush()


def starting(name: str) -> None:
    _write(sys.stdout, f"  {_style(sys.stdout, DIM, 'starting')}  {name}")


def ready(name: str, note: str = "") -> None:
    _write(sys.stdout, f"  {_style(sys.stdout, GREEN, 'ready')}     {clean(f'{name:<14} {note}'.rstrip())}")


def died(name: str, note: str) -> None:
    _write(sys.stdout, f"  {_style(sys.stdout, RED, 'died')}      {name:<14} {clean(note)}")


def log_line(name: str, line: str) -> None:
    _write(sys.stdout, f"{_style(sys.stdout, DIM, f'{name:>14} |')} {clean(line)}")


def warn(text: str) -> None:
    _write(sys.stderr, _style(sys.stderr, BOLD, "note: ") + clean(text))


def error(text: str) -> None:
    _write(sys.stderr, _style(sys.stderr, RED, "error: ") + clean(text))


class Progress:
    """One line that is written over on a terminal; elsewhere a line now and then."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._shown = self._began
        self._overwrites = sys.stderr.isatty()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._overwrites:
            _write(sys.stderr, "\r\x1b[K", end="")

    def show(self, text: str) -> None:
        now = time.monotonic()
        if now - self._shown < (0.1 if self._overwrites else QUIET_SECONDS):
            return
        self._shown = now
        line = f"  {now - self._began:3.0f} s  {text}"[: shutil.get_terminal_size().columns - 1]
        _write(sys.stderr, f"\r{line}\x1b[K" if self._overwrites else line, end="" if self._overwrites else "\n")


def has_colour(stream: TextIO) -> bool:
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM", "dumb") not in ("", "dumb")


def _style(stream: TextIO, code: str, text: str) -> str:
    return f"\x1b[{code}m{text}\x1b[0m" if has_colour(stream) else text


def _write(stream: TextIO, text: str, *, end: str = "\n") -> None:
    with contextlib.suppress(OSError):  # the reader has gone; what runs must still be stopped in order
        stream.write(text + end)
        stream.flush()
