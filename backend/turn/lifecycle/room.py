"""Whether a process has room for one more turn: what it cannot serve in time it refuses at once."""

import asyncio
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from statistics import median

from backend.conversation.errors import Overloaded
from backend.turn import reports

_LOOK_SECONDS = 0.05
_LOOKS = 11  # of about half a second
_FEW = 8
"""So many turns are no reason for a lag: other programs keep the machine busy, and those few go on slowly."""
_BEGUN_LAGS = 16
_QUEUE = 5
"""So many turns that have not begun in time stand in a queue for the database; fewer may wait for a lock."""


class Room:
    """`most` turns may run at once; none begins while the event loop lags, or others wait for the database to begin.

    It lags when most looks of the last half second came later than `lag_seconds`. That is what each step waits for its
    turn, and a token takes several of them. One thing that took long is no reason. None for any number or lag. A turn
    is to begin within 16 times the lag, which is a third of a second by default.
    """

    def __init__(self, most: int | None = None, lag_seconds: float | None = None) -> None:
        self._most = most
        self._lag_seconds = lag_seconds
        self.begun_within = None if lag_seconds is None else _BEGUN_LAGS * lag_seconds
        self._beginning: dict[object, float] = {}  # since when, the oldest first
        self._late = deque[float](maxlen=_LOOKS)

    async def watch(self) -> None:
        """As long as the process serves."""
        loop = asyncio.get_running_loop()
        while True:
            due = loop.time() + _LOOK_SECONDS
            await asyncio.sleep(_LOOK_SECONDS)
            self.look(loop.time() - due)

    def look(self, late: float) -> None:
        """One of them came so many seconds late."""
        self._late.append(late)

    @property
    def lags(self) -> bool:
        if self._lag_seconds is None or len(self._late) < _LOOKS:
            return False
        return median(self._late) > self._lag_seconds

    @contextmanager
    def place(self, *, running: int) -> Iterator[None]:
        """For a turn that begins beside so many, until it is one of them; raises `Overloaded`."""
        now = asyncio.get_running_loop().time()
        there = running + len(self._beginning)
        full = self._most is not None and there >= self._most
        if full or (self.lags and there > _FEW) or self._is_queued(now):
            reports.REFUSED.inc()
            raise Overloaded
        this = object()
        self._beginning[this] = now
        try:
            yield
        finally:
            del self._beginning[this]

    def _is_queued(self, now: float) -> bool:
        last_of_queue = next(islice(self._beginning.values(), _QUEUE - 1, None), now)
        return self.begun_within is not None and now - last_of_queue > self.begun_within
