"""Where a person is, and what their clock shows."""

from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

from sqlalchemy import bindparam, select
from sqlalchemy.dialects.postgresql import insert

from mcp_server.models import Person
from mcp_server.tasks.changes import OWNER, Caller
from service.clock import find_zone
from service.database import Session

PEOPLE = Person.metadata.tables["people"]
_KNOWN = select(PEOPLE.c.time_zone).where(PEOPLE.c.user_id == OWNER)
_NEW = insert(PEOPLE).values(user_id=OWNER, time_zone=bindparam("zone"))
_KEEP = _NEW.on_conflict_do_update(index_elements=["user_id"], set_={"time_zone": _NEW.excluded.time_zone})


@dataclass(frozen=True)
class Now:
    """The instant, and the person's own day and time in their zone."""

    instant: datetime
    zone: ZoneInfo
    is_kept: bool = True
    """Whether the zone is the person's when a call names none."""

    @property
    def local(self) -> datetime:
        return self.instant.astimezone(self.zone).replace(tzinfo=None)


async def now(session: Session, caller: Caller) -> Now:
    """By the zone that the call names, which is kept for clients that name none, else by the last one named."""
    read_now = await read(session, caller)
    await keep(session, caller, read_now)
    return read_now


async def read(session: Session, caller: Caller) -> Now:
    """As `now`, with nothing written."""
    known = await session.scalar(_KNOWN, {"owner": caller.user_id})
    zone = caller.zone or (known and find_zone(known)) or caller.usual_zone
    return Now(caller.clock(), zone, is_kept=caller.zone is None or caller.zone.key == known)


async def keep(session: Session, caller: Caller, now: Now) -> None:
    """Keep its zone. That locks the person's row, which no call does before it has passed the limits."""
    if not now.is_kept:
        await session.execute(_KEEP, {"owner": caller.user_id, "zone": now.zone.key})
