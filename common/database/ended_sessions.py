"""Which sessions were ended: each process of a service asks the database twice a second."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime

import psycopg

from common.database.transactions import NO_USER, Database, DatabaseUnavailable

LOOK_SECONDS = 0.5
_STALE_SECONDS = 1.0
_UNAVAILABLE = (DatabaseUnavailable, psycopg.Error)
_ENDED = "SELECT id, expires_at, looked_at FROM ended_sessions(%(since)s)"
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
        self._changed = asyncio.Event()

    @asynccontextmanager
    async def watch(self) -> AsyncIterator[None]:
        """Has read all of them when the block begins, if the database can be reached."""
        with contextlib.suppress(*_UNAVAILABLE):
            await self._look()
        looking = asyncio.create_task(self._look_on())
        try:
            yield
        finally:
            looking.cancel()

    async def _look_on(self) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            with contextlib.suppress(*_UNAVAILABLE):
                await self._look()

    async def _look(self) -> None:
        began = time.monotonic()
        rows = await self._database.fetch_all(NO_USER, _ENDED, since=self._since)
        self._looked_at = began
        self._since = rows[0]["looked_at"]
        for row in rows:
            if row["id"] is not None:
                self.add(row["id"], row["expires_at"])
        now = time.time()
        for session_id in [each for each, expiry in self._expiries.items() if expiry < now]:
            del self._expiries[session_id]

    def add(self, session_id: str, expires: datetime) -> None:
        if session_id in self._expiries:
            return
        self._expiries[session_id] = expires.timestamp() + 3600  # the clocks of services and database may differ
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    async def includes(self, user_id: str, session_id: str) -> bool:
        """Whether a session was ended. Raises `DatabaseUnavailable`, and psycopg's errors."""
        if session_id in self._expiries:
            return True
        if time.monotonic() - self._looked_at <= _STALE_SECONDS:
            return False
        return await self._database.fetch_one(user_id, _IS_OPEN, id=session_id) is None

    async def wait_for(self, session_id: str) -> None:
        """Returns once a session is known to have ended."""
        while session_id not in self._expiries:
            await self._changed.wait()
