"""Which sessions were ended: each process of a service asks the database twice a second."""

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime

import psycopg

from common.database.transactions import NO_USER, Database, DatabaseUnavailable

log = logging.getLogger(__name__)

LOOK_SECONDS = 0.5
_STALE_SECONDS = 1.0
_KEPT_SECONDS = 3600.0  # after the expiry, as the clocks of services and database may differ
_UNAVAILABLE = (DatabaseUnavailable, psycopg.Error, TimeoutError)
_ENDED = "SELECT id, expires, looked_at FROM ended_sessions(%(since)s)"
_IS_OPEN = "SELECT id FROM sessions WHERE user_id = %(user)s AND id = %(id)s AND ended_at IS NULL"


class EndedSessions:
    """The ids of the sessions that were ended before they expire, in whichever process.

    It needs no LISTEN, and so works behind any pooler. While its last look is older than a second, the table is asked.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._expiries = dict[str, float]()  # Unix time, by id
        self._since: datetime | None = None
        self._looked_at = float("-inf")
        self._is_failing = False
        self._changed = asyncio.Event()

    @asynccontextmanager
    async def watch(self) -> AsyncIterator[None]:
        """Has read all of them when the block begins, if the database can be reached."""
        await self._look()
        looking = asyncio.create_task(self._look_on())
        try:
            yield
        finally:
            looking.cancel()

    async def _look_on(self) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            await self._look()

    async def _look(self) -> None:
        began = time.monotonic()
        try:
            async with asyncio.timeout(_STALE_SECONDS):  # a connection that is lost may be silent
                rows = await self._database.fetch_all(NO_USER, _ENDED, since=self._since)
        except _UNAVAILABLE as error:
            if not self._is_failing:
                log.warning("cannot read which sessions were ended: %s", type(error).__name__)
            self._is_failing = True
            return
        self._is_failing = False
        self._looked_at = began
        self._since = rows[0]["looked_at"]
        for row in rows:
            if row["id"] is not None:
                self.add(row["id"], row["expires"])
        now = time.time()
        for session_id in [each for each, expiry in self._expiries.items() if expiry < now]:
            del self._expiries[session_id]

    def add(self, session_id: str, expires: float) -> None:
        """Adds one that this process has ended; `expires` is Unix time."""
        known = self._expiries.get(session_id)
        self._expiries[session_id] = max(known or 0.0, expires + _KEPT_SECONDS)  # a copy of its cookie may be older
        if known is not None:
            return
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    def __contains__(self, session_id: object) -> bool:
        """Whether a session is known to be ended."""
        return session_id in self._expiries

    async def includes(self, user_id: str, session_id: str) -> bool:
        """Whether a session was ended. Raises `DatabaseUnavailable`, and psycopg's errors."""
        if session_id in self:
            return True
        if time.monotonic() - self._looked_at <= _STALE_SECONDS:
            return False
        return await self._database.fetch_one(user_id, _IS_OPEN, id=session_id) is None

    async def wait_for(self, user_id: str, session_id: str) -> None:
        """Returns once a session has ended, also while the looks fail."""
        while True:
            with contextlib.suppress(*_UNAVAILABLE):
                if await self.includes(user_id, session_id):
                    return
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), _STALE_SECONDS)
