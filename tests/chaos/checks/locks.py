"""How long a conversation is refused that nobody answers in any more."""

import psycopg
from psycopg import AsyncConnection

from client.connection import Refused
from tests.chaos.record import Record
from tests.chaos.system import LEASE_SECONDS
from tests.support.stored import HAS_NEW_CORE

_SILENT = """
    SELECT runs.id, extract(epoch FROM clock_timestamp() - heartbeat_at)::float8 FROM runs
    JOIN conversations USING (user_id) WHERE conversations.id = runs.conversation_id
    AND %s IN (conversations.id, conversations.name) AND runs.status = 'running'
"""
Held = tuple[str, float]
"""A run that is running, and for how many seconds its heartbeat was not heard."""


def is_busy(refusal: Exception) -> bool:
    return isinstance(refusal, Refused) and "still answering" in str(refusal)


class Locks:
    """A request that was sent when the heartbeat was older than the lease must not be refused."""

    def __init__(self, admin_url: str, record: Record) -> None:
        self._admin_url = admin_url
        self._record = record

    async def held(self, conversation: str) -> Held | None:
        """By which run the conversation is held now; None too where the database does not say, as on the new core."""
        if HAS_NEW_CORE:
            return None
        try:
            connection = await AsyncConnection.connect(self._admin_url, connect_timeout=2)
            async with connection:
                return await (await connection.execute(_SILENT, [conversation])).fetchone()
        except psycopg.Error:
            return None

    def refused(self, before: Held | None, after: Held | None) -> None:
        """A request that was sent after the one look and before the other."""
        if before is None or after is None or before[0] != after[0] or after[1] < before[1]:
            return  # another run, or one whose process is there
        self._record.longest_lock = max(self._record.longest_lock, before[1])
        assert before[1] <= LEASE_SECONDS, f"refused {before[1]:.1f} s after the last heartbeat of {before[0]}"
