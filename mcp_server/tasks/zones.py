"""The time zone and local time of a user."""

from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

from common.clock import find_zone
from common.database import Transaction
from mcp_server.tasks.changes import Caller

# The table is the backend's, which alone writes it: MCP clients name no zone, and a copy would differ from it.
_LOAD = "SELECT time_zone FROM profiles WHERE user_id = %(user)s"


@dataclass(frozen=True)
class Now:
    instant: datetime
    zone: ZoneInfo

    @property
    def local(self) -> datetime:
        return self.instant.astimezone(self.zone).replace(tzinfo=None)


async def get_now(tx: Transaction, caller: Caller) -> Now:
    """Uses the zone in the call's metadata; without one, that of the user's profile."""
    return Now(caller.clock(), caller.zone or await _load_zone(tx) or caller.usual_zone)


async def _load_zone(tx: Transaction) -> ZoneInfo | None:
    row = await (await tx.execute(_LOAD)).fetchone()
    return find_zone(row["time_zone"]) if row and row["time_zone"] else None
