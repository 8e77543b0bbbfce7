"""What is kept of a person beside their conversations."""

import hashlib
from collections.abc import Collection

from sqlalchemy import ColumnElement, LargeBinary, Text, bindparam, null, select, update
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
_HAS_CALENDAR = Statement(select(PROFILES.c.user_id).where(_MINE, PROFILES.c.calendar_hash.is_not(None)))
_NEW_CALENDAR = insert(PROFILES).values(user_id=_OWNER, calendar_hash=bindparam("hash", type_=LargeBinary))
_SET_CALENDAR = Statement(
    _NEW_CALENDAR.on_conflict_do_update(
        index_elements=["user_id"], set_={"calendar_hash": _NEW_CALENDAR.excluded.calendar_hash}
    )
)
_REVOKE_CALENDAR = Statement(
    update(PROFILES)
    .where(_MINE, PROFILES.c.calendar_hash.is_not(None))
    .values(calendar_hash=null())
    .returning(PROFILES.c.user_id)
)
_IS_KNOWN = Statement("""
    SELECT FROM profiles WHERE user_id = %(owner)s
    UNION ALL SELECT FROM conversations WHERE user_id = %(owner)s LIMIT 1
""")
_MEMORY = Statement(select(PROFILES.c.memory).where(_MINE))
# One who has no row has an empty memory, of the version that `empty` tells of.
_SET_MEMORY = Statement("""
    INSERT INTO profiles (user_id, memory)
    SELECT %(owner)s, nullif(%(text)s::text, '')
    WHERE %(empty)s OR EXISTS (SELECT FROM profiles WHERE user_id = %(owner)s)
    ON CONFLICT (user_id) DO UPDATE SET memory = excluded.memory
    WHERE %(versions)s::text[] IS NULL
        OR encode(sha256(convert_to(coalesce(profiles.memory, ''), 'UTF8')), 'hex') = ANY (%(versions)s)
    RETURNING user_id
""")
# Across people: a function of the tables' owner, made by migration 0012. It tells the id only.
_OF_CALENDAR = Statement("SELECT user_id FROM person_of_calendar(%(hash)s)")


def _keep(*only_if: ColumnElement[bool]) -> Statement:
    """Writes what is new only."""
    known = select(PROFILES.c.user_id).where(_MINE, PROFILES.c.time_zone == _ZONE).exists()
    added = insert(PROFILES).from_select(["user_id", "time_zone"], select(_OWNER, _ZONE).where(*only_if, ~known))
    return Statement(
        added.on_conflict_do_update(index_elements=["user_id"], set_={"time_zone": added.excluded.time_zone})
    )


_KEEP, _KEEP_WITH_TURN = _keep(), _keep(leases.HOLDS)


async def send_time_zone(pipeline: Pipeline, zone: str, acting: Acting) -> None:
    """Keep the zone as the person's, if the turn holds its lease: one that is refused stores nothing."""
    await pipeline.send(_KEEP_WITH_TURN, owner=acting.user_id, run=acting.run_id, zone=zone)


async def keep_time_zone(engine: AsyncEngine, user_id: str, zone: str) -> None:
    """Keep the zone as the person's; one round trip."""
    async with pipelined(engine, user_id) as pipeline:
        await pipeline.send(_KEEP, owner=user_id, zone=zone)


async def time_zone(engine: AsyncEngine, user_id: str) -> str | None:
    """The zone that the person's client last named; one round trip."""
    async with pipelined(engine, user_id) as pipeline:
        found = await pipeline.send(_FIND, owner=user_id)
    row = await found.fetchone()
    return row["time_zone"] if row else None


async def is_known(engine: AsyncEngine, user_id: str) -> bool:
    """Whether the user has ever opened the page or begun a conversation; one round trip."""
    async with pipelined(engine, user_id) as pipeline:
        found = await pipeline.send(_IS_KNOWN, owner=user_id)
    return await found.fetchone() is not None


def version_of(memory: str) -> str:
    """The same for the same text, and for no other."""
    return hashlib.sha256(memory.encode()).hexdigest()


async def memory(engine: AsyncEngine, user_id: str) -> str:
    """What the person wants remembered; one round trip."""
    async with pipelined(engine, user_id) as pipeline:
        found = await pipeline.send(_MEMORY, owner=user_id)
    row = await found.fetchone()
    return row["memory"] or "" if row else ""


async def set_memory(engine: AsyncEngine, user_id: str, text: str, *, versions: Collection[str] | None) -> bool:
    """Keep this instead of what it was, if that is one of these versions, or whatever it was; returns whether it is.

    One round trip.
    """
    empty = versions is None or version_of("") in versions
    of = None if versions is None else list(versions)
    async with pipelined(engine, user_id) as pipeline:
        kept = await pipeline.send(_SET_MEMORY, owner=user_id, text=text, empty=empty, versions=of)
    return await kept.fetchone() is not None


async def has_calendar(engine: AsyncEngine, user_id: str) -> bool:
    """Whether the person has the address of a calendar; one round trip."""
    async with pipelined(engine, user_id) as pipeline:
        found = await pipeline.send(_HAS_CALENDAR, owner=user_id)
    return await found.fetchone() is not None


async def set_calendar(engine: AsyncEngine, user_id: str, hash: bytes) -> None:
    """Keep the SHA-256 of the secret in the calendar's address; the address before it opens nothing any more."""
    async with pipelined(engine, user_id) as pipeline:
        await pipeline.send(_SET_CALENDAR, owner=user_id, hash=hash)


async def revoke_calendar(engine: AsyncEngine, user_id: str) -> bool:
    """Let the address of the person's calendar open nothing any more; returns whether there was one."""
    async with pipelined(engine, user_id) as pipeline:
        revoked = await pipeline.send(_REVOKE_CALENDAR, owner=user_id)
    return await revoked.fetchone() is not None


async def person_of_calendar(engine: AsyncEngine, hash: bytes) -> str | None:
    """Whose calendar it is that has a secret of this SHA-256; one round trip, as nobody."""
    async with pipelined(engine, "") as pipeline:
        found = await pipeline.send(_OF_CALENDAR, hash=hash)
    row = await found.fetchone()
    return row["user_id"] if row else None
