"""The only place of the command line that writes to the terminal."""

import contextlib
import os
import re
import shutil
import sys
import time
from collections.abc import Iterator
from typing import BinaryIO, Self, TextIO

from cli.errors import CliError
from common.commands import EXIT_READER_GONE, discard, discard_output

BOLD, GREEN, RED, DIM = "1", "32", "31", "2"
QUIET_SECONDS = 5
WIDTH = 80  # of output that is no terminal's

# Control characters except newline and tab, Unicode's line ends, marks of text direction.
_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
# Python decodes arguments, and `os.fsdecode` other input, so that a byte that is no text becomes one of these.
_UNDECODED = re.compile("[\ud800-\udfff]")


class OutputLost(CliError):
    """Standard output takes no more. The text is empty if its reader has gone, as with `head`: there is no failure."""

    def __init__(self, sentence: str = "") -> None:
        super().__init__(sentence)
        self.status = 1 if sentence else EXIT_READER_GONE


def prepare_streams() -> None:
    """Replaces streams that are closed by /dev/null, also for child processes, which take over the descriptors.

    Otherwise a file that is opened later would get the number of the output.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            stream = open(os.devnull, "w" if number else "r")  # noqa: SIM115 - as long as the process runs
            os.dup2(stream.fileno(), number)
            os.set_inheritable(number, True)
            setattr(sys, name, stream)
        getattr(sys, name).reconfigure(errors="replace")  # for characters that the terminal's encoding lacks


def is_text(text: str) -> bool:
    """Whether all bytes of an input could be decoded."""
    return not _UNDECODED.search(text)


def mark_undecoded(text: str) -> str:
    """Replaces what is no text visibly."""
    return _UNDECODED.sub("\ufffd", text)


def clean(text: str) -> str:
    """Removes what a terminal would obey, such as escape sequences."""
    return _UNSAFE.sub("", mark_undecoded(text))


def write(text: str) -> None:
    """Writes to standard output. Raises `OutputLost`, as all functions that write there."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except OSError as error:
        raise OutputLost(discard_output(error)) from error


def flush() -> None:
    """Writes what other code, such as argparse, has printed."""
    _write_error("")
    write("")


def say(text: str = "") -> None:
    write(f"{clean(text)}\n")


def notice(text: str) -> None:
    _write_error(f"{clean(text)}\n")


def notice_rendered(line: str) -> None:
    _write_error(f"{line}\n")


def heading(text: str) -> None:
    write(f"{_style(sys.stdout, BOLD, text)}\n")


def confirm(question: str, *, without_terminal: str, rejected: str) -> None:
    """Asks whether to go on. Raises `CliError` with one of the two sentences if the user does not say so."""
    if not sys.stdin.isatty():
        raise CliError(without_terminal)
    write(f"{clean(question)} [y/N] ")
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise CliError(rejected)


def copy(document: BinaryIO) -> None:
    """Writes a document to standard output, which has to be there."""
    if sys.stdout.name == os.devnull:
        raise OutputLost("There is no standard output to write to.")
    try:
        shutil.copyfileobj(document, sys.stdout.buffer)
        sys.stdout.buffer.flush()
    except OSError as error:
        raise OutputLost(discard_output(error)) from error


def starting(name: str) -> None:
    _report(f"  {_style(sys.stdout, DIM, 'starting')}  {name}")


def ready(name: str, note: str = "") -> None:
    _report(f"  {_style(sys.stdout, GREEN, 'ready')}     {clean(f'{name:<14} {note}'.rstrip())}")


def died(name: str, note: str) -> None:
    _report(f"  {_style(sys.stdout, RED, 'died')}      {name:<14} {clean(note)}")


def log_line(name: str, line: str) -> None:
    write(f"{_style(sys.stdout, DIM, f'{name:>14} |')} {clean(line)}\n")


def warn(text: str) -> None:
    _write_error(f"{_style(sys.stderr, BOLD, 'note: ')}{clean(text)}\n")


def error(text: str) -> None:
    _write_error(f"{_style(sys.stderr, RED, 'error: ')}{clean(text)}\n")


class Progress:
    """One line that is written over on a terminal; elsewhere a line now and then."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._shown = self._began
        self._overwrites = _can_overwrite(sys.stderr)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._overwrites:
            _write_error("\r\x1b[K")

    def begin(self, step: str) -> None:
        """Shows at once what is done next."""
        self._shown = float("-inf")
        self.show(step)

    def show(self, text: str) -> None:
        now = time.monotonic()
        if now - self._shown < (0.1 if self._overwrites else QUIET_SECONDS):
            return
        self._shown = now
        line = f"  {now - self._began:3.0f} s  {text}"[: get_width(sys.stderr) - 1]
        _write_error(f"\r{line}\x1b[K" if self._overwrites else f"{line}\n")


def get_width(stream: TextIO) -> int:
    """Returns the columns of a terminal; 80 of a file or a pipe."""
    try:
        return os.get_terminal_size(stream.fileno()).columns or WIDTH
    except OSError:
        return WIDTH


class Steps:
    """A line for each step; on a terminal, the seconds of the one that is being done count up."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._number = 0
        self._line = ""
        self._began = 0.0
        self._overwrites = _can_overwrite(sys.stderr)

    @contextlib.contextmanager
    def begin(self, name: str) -> Iterator[None]:
        self._number = min(self._number + 1, self._total)
        self._line = f"  step {self._number} of {self._total}: {name}"
        self._began = time.monotonic()
        _write_error(self._line if self._overwrites else f"{self._line}\n")
        try:
            yield
        finally:
            self.tick()
            self._line = ""
            _write_error("\n" if self._overwrites else "")

    def tick(self) -> None:
        if self._overwrites and self._line:
            seconds = f"  {time.monotonic() - self._began:.0f} s"
            width = get_width(sys.stderr) - 1 - len(seconds)
            _write_error(f"\r{self._line[:width]}{seconds}")


def has_colour(stream: TextIO) -> bool:
    return _can_overwrite(stream) and not os.environ.get("NO_COLOR")


def _can_overwrite(stream: TextIO) -> bool:
    return stream.isatty() and os.environ.get("TERM", "dumb") not in ("", "dumb")


def _style(stream: TextIO, code: str, text: str) -> str:
    return f"\x1b[{code}m{text}\x1b[0m" if has_colour(stream) else text


def _report(line: str) -> None:
    """Says what became of a service: these continue although nobody reads it."""
    with contextlib.suppress(OutputLost):
        write(f"{line}\n")


def _write_error(text: str) -> None:
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except OSError:  # there is nowhere to say so
        discard(sys.stderr)
