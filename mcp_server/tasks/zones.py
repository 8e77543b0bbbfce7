"""The time zone and local time of a user."""

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
    instant: datetime
    zone: ZoneInfo

    @property
    def local(self) -> datetime:
        return self.instant.astimezone(self.zone).replace(tzinfo=None)


async def get_now(tx: Transaction, caller: Caller) -> Now:
    """Uses and stores the zone in the call's metadata; without one, the stored zone."""
    row = await (await tx.execute(_LOAD)).fetchone()
    stored: str | None = row["time_zone"] if row else None
    if caller.zone is not None and caller.zone.key != stored:
        await tx.execute(_STORE, zone=caller.zone.key)
    return Now(caller.clock(), caller.zone or (stored and find_zone(stored)) or caller.usual_zone)
