"""A terminal that can be written to and read from by lines, and nothing else."""

import asyncio
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence

from cli.chat.screens.screen import AGAIN_LEAVES, TWICE_SECONDS, Person, Screen
from cli.chat.screens.text import Style


class Plain(Screen):
    """What `Screen` does, without keys: what is typed comes when its line is ended."""

    def __init__(self, style: Style) -> None:
        super().__init__(style)
        self._interrupted_at = -TWICE_SECONDS
        self._left = asyncio.Event()
        self._rest = b""

    @property
    def size(self) -> tuple[int, int]:
        try:
            columns, rows = os.get_terminal_size()
        except OSError:
            columns, rows = 80, 24
        return max((columns or 80) - 1, 20), rows or 24

    async def run(self, person: Person, ready: Callable[[], None]) -> None:
        loop = asyncio.get_running_loop()
        loop.add_reader(sys.stdin.fileno(), self._read, person)
        loop.add_signal_handler(signal.SIGINT, self._interrupt, person)
        ready()
        try:
            await self._left.wait()
        finally:
            loop.remove_reader(sys.stdin.fileno())
            loop.remove_signal_handler(signal.SIGINT)

    async def show(self, *lines: str, block: Sequence[str] | None = None) -> None:
        for line in lines:
            self._write(f"{line}\n")

    def redraw(self) -> None:
        """Nothing is drawn twice."""

    def fill(self, text: str) -> None:
        if text:
            self._write(f"(not sent: {text})\n")

    def leave(self) -> None:
        self._left.set()

    def _read(self, person: Person) -> None:
        piece = os.read(sys.stdin.fileno(), 65_536)
        *lines, self._rest = (self._rest + piece).split(b"\n")
        for line in lines:
            person.entered(line.decode(errors="replace"))
        if not piece:
            self.leave()

    def _interrupt(self, person: Person) -> None:
        if person.interrupted():
            return
        if time.monotonic() - self._interrupted_at < TWICE_SECONDS:
            self.leave()
        else:
            self._interrupted_at = time.monotonic()
            self._write(f"\n{AGAIN_LEAVES}\n")

    def waits(self) -> None:
        self._write(self.mark)

    def _write(self, text: str) -> None:
        sys.stdout.write(text)
        sys.stdout.flush()
