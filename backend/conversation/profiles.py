"""What is kept of a person beside their conversations."""

from sqlalchemy import Text, bindparam, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncEngine

from backend.conversation.acting import Acting
from backend.conversation.models import Profile
from backend.conversation.runs import leases
from service.database import Pipeline, Statement, pipelined

PROFILES = Profile.metadata.tables["profiles"]
_OWNER, _ZONE = bindparam("owner", type_=Text), bindparam("zone", type_=Text)
_MINE = PROFILES.c.user_id == _OWNER

_FIND = Statement(select(PROFILES.c.time_zone).where(_MINE))


def _keep() -> Statement:
    """Writes what is new only, and only for a turn that holds its lease: a request that is refused stores nothing."""
    known = select(PROFILES.c.user_id).where(_MINE, PROFILES.c.time_zone == _ZONE).exists()
    added = insert(PROFILES).from_select(["user_id", "time_zone"], select(_OWNER, _ZONE).where(leases.HOLDS, ~known))
    return Statement(
        added.on_conflict_do_update(index_elements=["user_id"], set_={"time_zone": added.excluded.time_zone})
    )


_KEEP = _keep()


async def send_time_zone(pipeline: Pipeline, zone: str, acting: Acting) -> None:
    """Keep the zone as the person's."""
    await pipeline.send(_KEEP, owner=acting.user_id, run=acting.run_id, zone=zone)


async def time_zone(engine: AsyncEngine, user_id: str) -> str | None:
    """The zone that the person's client last named; one round trip."""
    async with pipelined(engine, user_id) as pipeline:
        found = await pipeline.send(_FIND, owner=user_id)
    row = await found.fetchone()
    return row["time_zone"] if row else None
