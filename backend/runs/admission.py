"""Admission control: a process rejects at once a run that it could not serve in time."""

import asyncio
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median

from prometheus_client import Counter

from backend.errors import Overloaded

_TIMER_SECONDS = 0.1
_LAGS_KEPT = 5  # those of half a second
_FEW_RUNS = 8  # with no more, other programs keep the machine busy
_START_LAGS = 16
_QUEUED_STARTS = 5  # fewer runs that have not started in time may wait for a lock, so many for the database

REJECTED = Counter("todo_runs_rejected", "Runs that were rejected because the process was overloaded")


class AdmissionControl:
    """Admits at most `max_runs` runs at once, and none while the event loop lags or others wait for the database.

    The loop lags if most timers of the last half second fired more than `lag_seconds` late, as each step of a run then
    does. A run is to start within 16 times that.
    """

    def __init__(self, max_runs: int, lag_seconds: float) -> None:
        self._max_runs, self._lag_seconds = max_runs, lag_seconds
        self._start_seconds = _START_LAGS * lag_seconds
        self._starting: list[float] = []  # since when, the oldest first
        self._lags = deque[float](maxlen=_LAGS_KEPT)

    async def watch(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            due = loop.time() + _TIMER_SECONDS
            await asyncio.sleep(_TIMER_SECONDS)
            self._lags.append(loop.time() - due)

    @contextmanager
    def admit(self, *, running: int) -> Iterator[None]:
        """Counts a run that is about to start beside `running` others, until the block ends.

        Raises `Overloaded` for three causes: too many runs, an event loop that lags while more than a few runs are
        executed, or earlier runs that wait for the database to start.
        """
        now = asyncio.get_running_loop().time()
        runs = running + len(self._starting)
        if runs >= self._max_runs or (self._is_lagging and runs > _FEW_RUNS) or self._is_queued(now):
            REJECTED.inc()
            raise Overloaded
        self._starting.append(now)
        try:
            yield
        finally:
            self._starting.remove(now)

    @property
    def _is_lagging(self) -> bool:
        return len(self._lags) == _LAGS_KEPT and median(self._lags) > self._lag_seconds

    def _is_queued(self, now: float) -> bool:
        return len(self._starting) >= _QUEUED_STARTS and now - self._starting[_QUEUED_STARTS - 1] > self._start_seconds
