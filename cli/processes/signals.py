import contextlib
import os
import select
import signal
from types import FrameType
from typing import Self

WANTED_STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Signals:
    """Turns a request to stop, and a child's end, into a wake-up instead of an exception at any line."""

    def __init__(self) -> None:
        self.stops_wanted = 0
        self._reader, self._writer = os.pipe()

    def __enter__(self) -> Self:
        for end in (self._reader, self._writer):
            os.set_blocking(end, False)
        self._previous_fd = signal.set_wakeup_fd(self._writer, warn_on_full_buffer=False)
        self._previous = {s: signal.signal(s, self._handle) for s in (*WANTED_STOPS, signal.SIGCHLD)}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._previous_fd)
        os.close(self._reader)
        os.close(self._writer)

    def wait(self, seconds: float | None = None) -> None:
        select.select([self._reader], [], [], seconds)
        with contextlib.suppress(BlockingIOError):
            os.read(self._reader, 4096)

    def _handle(self, number: int, _: FrameType | None) -> None:
        if number in WANTED_STOPS:
            self.stops_wanted += 1
