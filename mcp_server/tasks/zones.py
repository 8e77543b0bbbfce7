"""Where a user is, and what their clock shows."""

from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

from common.clock import find_zone
from common.database import Transaction
from mcp_server.tasks.changes import Caller

_LOAD = "SELECT time_zone FROM people WHERE user_id = %(user)s"
_STORE = """
INSERT INTO people (user_id, time_zone) VALUES (%(user)s, %(zone)s)
ON CONFLICT (user_id) DO UPDATE SET time_zone = excluded.time_zone"""


@dataclass(frozen=True)
class Now:
    """The instant, and the user's own day and time in their zone."""

    instant: datetime
    zone: ZoneInfo
    is_stored: bool = True
    """Whether the zone is the user's when a call names none."""

    @property
    def local(self) -> datetime:
        return self.instant.astimezone(self.zone).replace(tzinfo=None)


async def now(tx: Transaction, caller: Caller) -> Now:
    """By the zone that the call names, which is stored for clients that name none, else by the last one named."""
    now = await load_now(tx, caller)
    await store_zone(tx, caller, now)
    return now


async def load_now(tx: Transaction, caller: Caller) -> Now:
    """As `now`, with nothing written."""
    row = await (await tx.execute(_LOAD, user=caller.user_id)).fetchone()
    known: str | None = row["time_zone"] if row else None
    zone = caller.zone or (known and find_zone(known)) or caller.usual_zone
    return Now(caller.clock(), zone, is_stored=caller.zone is None or caller.zone.key == known)


async def store_zone(tx: Transaction, caller: Caller, now: Now) -> None:
    """Stores its zone. That locks the user's row, which no call does before it has passed the limits."""
    if not now.is_stored:
        await tx.execute(_STORE, user=caller.user_id, zone=now.zone.key)
