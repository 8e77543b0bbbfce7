"""Admission control: a process rejects at once a run that it could not serve in time."""

import asyncio
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median

from prometheus_client import Counter

from backend.errors import Overloaded

_LOOK_SECONDS = 0.1
_LOOKS = 5  # of half a second
_FEW = 8  # with so few runs other programs are what keeps the machine busy
_START_LAGS = 16
_QUEUE = 5  # so many runs that have not started in time wait for the database; fewer may wait for a lock

REJECTED = Counter("todo_runs_rejected", "Runs that were rejected because the process was overloaded")


class AdmissionControl:
    """At most `most` runs at once, and none while the event loop lags or others wait for the database to start.

    The loop lags when most looks of the last half second came later than `lag_seconds`: each step of a run waits as
    long. A run is to start within 16 times that.
    """

    def __init__(self, most: int, lag_seconds: float) -> None:
        self._most, self._lag_seconds = most, lag_seconds
        self._start_seconds = _START_LAGS * lag_seconds
        self._starting: list[float] = []  # since when, the oldest first
        self._lags = deque[float](maxlen=_LOOKS)

    async def watch(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            due = loop.time() + _LOOK_SECONDS
            await asyncio.sleep(_LOOK_SECONDS)
            self._lags.append(loop.time() - due)

    @contextmanager
    def admit(self, *, running: int) -> Iterator[None]:
        """Counts a run that is about to start beside `running` others, until the block ends.

        Raises `Overloaded` for three causes: too many runs, an event loop that lags while more than a few runs are
        executed, or earlier runs that wait for the database to start.
        """
        now = asyncio.get_running_loop().time()
        runs = running + len(self._starting)
        if runs >= self._most or (self._is_lagging and runs > _FEW) or self._is_queued(now):
            REJECTED.inc()
            raise Overloaded
        self._starting.append(now)
        try:
            yield
        finally:
            self._starting.remove(now)

    @property
    def _is_lagging(self) -> bool:
        return len(self._lags) == _LOOKS and median(self._lags) > self._lag_seconds

    def _is_queued(self, now: float) -> bool:
        return len(self._starting) >= _QUEUE and now - self._starting[_QUEUE - 1] > self._start_seconds
