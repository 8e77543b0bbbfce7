"""A terminal of a test: the keys that are typed, and what is on its screen."""

import asyncio
import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Self

import pyte

from cli.processes.children import die_with_parent
from tests.conftest import ROOT
from tests.support.commands import redirected
from tests.waiting import WAIT_SECONDS, until

ENTER, TAB, ALT_ENTER, UP = "\r", "\t", "\x1b\r", "\x1b[A"
CTRL_A, CTRL_C, CTRL_D, CTRL_J, CTRL_R = "\x01", "\x03", "\x04", "\n", "\x12"


class _Screen(pyte.HistoryScreen):
    """Answers where the cursor is, as terminals do."""

    def __init__(self, columns: int, rows: int, answer: Callable[[str], None]) -> None:
        super().__init__(columns, rows, history=10_000, ratio=0.5)
        self._answer = answer

    def write_process_input(self, data: str) -> None:
        self._answer(data)


class Terminal:
    """`./todo chat` in a terminal of so many columns; `raw` is every byte that it was sent.

    With `nohup` it gets no signal when the terminal is closed, and its errors are in a pipe.
    """

    def __init__(
        self,
        *arguments: str,
        columns: int = 80,
        rows: int = 24,
        environment: dict[str, str] | None = None,
        nohup: bool = False,
    ) -> None:
        self._master, slave = pty.openpty()
        self.raw = b""
        self._screen = _Screen(columns, rows, self.keys)
        self._stream = pyte.ByteStream(self._screen)
        self._resize(slave, columns, rows)
        variables = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "TERM": "xterm-256color", "LANG": "C.UTF-8"}
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-m", "cli", "chat", *arguments],
            cwd=ROOT,
            env={**variables, "PYTHONPATH": str(ROOT), **(environment or {})},
            stdin=slave,
            stdout=slave,
            stderr=subprocess.PIPE if nohup else slave,
            start_new_session=True,
            preexec_fn=_controlled(nohup=nohup),
        )
        os.close(slave)
        self._is_closed = False
        self._guard = threading.Lock()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        if self.process.stderr is not None:
            self.process.stderr.close()
        self.close()

    def close(self) -> None:
        """Closes the window."""
        if not self._is_closed:
            self._is_closed = True
            self._reader.join(5)
            os.close(self._master)

    def keys(self, *keys: str) -> None:
        """Types all of them at once; `\\udce9` and the like are bytes that are no UTF-8."""
        os.write(self._master, os.fsencode("".join(keys)))

    def resize(self, columns: int, rows: int) -> None:
        with self._guard:
            self._screen.resize(rows, columns)
        self._resize(self._master, columns, rows)

    def say(self, text: str) -> None:
        """Type it, and send it."""
        self.keys(text, ENTER)

    @property
    def lines(self) -> list[str]:
        """All that was and is on the screen, without what is right of the text."""
        with self._guard:
            above = ["".join(line[x].data for x in range(self._screen.columns)) for line in self._screen.history.top]
            return [line.rstrip() for line in (*above, *self._screen.display)]

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    async def wait_for(self, *texts: str, times: int = 1) -> str:
        """The screen, once each of these is on it, the last so often."""
        return await self.wait_until(lambda text: all(one in text for one in texts) and text.count(texts[-1]) >= times)

    async def wait_until(self, condition: Callable[[str], bool]) -> str:
        deadline = time.monotonic() + WAIT_SECONDS
        while not condition(text := self.text):
            assert time.monotonic() < deadline, f"it is not there:\n{text}"
            await asyncio.sleep(0.01)
        return text

    async def complete(self, text: str) -> None:
        """Presses Tab until the text is there: the names that can be completed are read in the background."""
        for _ in range(WAIT_SECONDS):
            self.keys(TAB)
            with suppress(AssertionError):
                await until(lambda: text in self.text, seconds=1)
                return
        raise AssertionError(f"it is not completed:\n{self.text}")

    async def ended(self) -> int:
        """The status, when all that it has printed is read."""
        status = await asyncio.to_thread(self.process.wait, WAIT_SECONDS)
        await asyncio.to_thread(self._reader.join, WAIT_SECONDS)
        return status

    def _read(self) -> None:
        while not self._is_closed:
            if not select.select([self._master], [], [], 0.1)[0]:
                continue
            try:
                piece = os.read(self._master, 65_536)
            except OSError:
                return
            if not piece:
                return
            with self._guard:
                self.raw += piece
                self._stream.feed(piece)

    @staticmethod
    def _resize(terminal: int, columns: int, rows: int) -> None:
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def _controlled(*, nohup: bool) -> Callable[[], None]:
    die = die_with_parent(signal.SIGKILL)

    def controlled() -> None:
        if die is not None:
            die()
        if nohup:
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    return controlled


async def chat(
    *arguments: str, stdin: bytes = b"", cwd: Path = ROOT, redirection: str = "", **variables: str
) -> "subprocess.CompletedProcess[str]":
    """`./todo chat` without a terminal."""
    kept = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), **variables}
    command = redirected([sys.executable, "-P", "-m", "cli", "chat", *arguments], redirection)
    run = partial(subprocess.run, command, cwd=cwd, env=kept, capture_output=True, timeout=WAIT_SECONDS)
    done = await asyncio.to_thread(run, input=stdin)
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())
