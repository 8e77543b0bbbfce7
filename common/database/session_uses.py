"""When sessions were last used, to ten minutes."""

import asyncio
import contextlib
import time
from collections import OrderedDict

import psycopg

from common.database.transactions import Database, DatabaseUnavailable

_USE_SECONDS = 600.0
_MAX_NOTED = 10_000
_USE = """
UPDATE sessions SET last_used_at = now()
WHERE user_id = %(user)s AND id = %(id)s AND last_used_at < now() - interval '10 minutes'"""


class SessionUses:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._noted = OrderedDict[str, float]()  # when a use was last stored, by id
        self._storing = set[asyncio.Task[None]]()

    def note(self, user_id: str, session_id: str) -> None:
        """Stores that a session is used, without waiting for it."""
        now = time.monotonic()
        if now - self._noted.get(session_id, float("-inf")) < _USE_SECONDS:
            return
        self._noted[session_id] = now
        if len(self._noted) > _MAX_NOTED:
            self._noted.popitem(last=False)
        storing = asyncio.create_task(self._store(user_id, session_id))
        self._storing.add(storing)
        storing.add_done_callback(self._storing.discard)

    async def _store(self, user_id: str, session_id: str) -> None:
        with contextlib.suppress(DatabaseUnavailable, psycopg.Error):  # a later one is stored
            await self._database.execute(user_id, _USE, id=session_id)
