"""What is stored about a user apart from conversations: name, time zone, memory, and the address of their calendar."""

import hashlib
from collections.abc import Collection
from dataclasses import dataclass

from common.database import NO_USER, Database, Transaction

_TIME_ZONE = "SELECT time_zone FROM profiles WHERE user_id = %(user)s"
# For a user whose zone is not stored yet.
_SET_FIRST_TIME_ZONE = """
INSERT INTO profiles (user_id, time_zone)
SELECT %(user)s, %(zone)s
WHERE NOT EXISTS (SELECT FROM profiles WHERE user_id = %(user)s AND time_zone IS NOT NULL)
ON CONFLICT (user_id) DO UPDATE SET time_zone = coalesce(profiles.time_zone, excluded.time_zone)"""
_PROFILE = "SELECT coalesce(name, '') AS name, time_zone FROM profiles WHERE user_id = %(user)s"
# What is null stays as it is; an empty name removes it.
_CHANGE_PROFILE = """
INSERT INTO profiles (user_id, name, time_zone) VALUES (%(user)s, nullif(%(name)s::text, ''), %(zone)s)
ON CONFLICT (user_id) DO UPDATE SET
    name = CASE WHEN %(name)s::text IS NULL THEN profiles.name ELSE excluded.name END,
    time_zone = coalesce(excluded.time_zone, profiles.time_zone)
RETURNING coalesce(name, '') AS name, time_zone"""
_HAS_CALENDAR = "SELECT user_id FROM profiles WHERE user_id = %(user)s AND calendar_hash IS NOT NULL"
_SET_CALENDAR = """
INSERT INTO profiles (user_id, calendar_hash) VALUES (%(user)s, %(hash)s)
ON CONFLICT (user_id) DO UPDATE SET calendar_hash = excluded.calendar_hash"""
_REVOKE_CALENDAR = """
UPDATE profiles SET calendar_hash = NULL
WHERE user_id = %(user)s AND calendar_hash IS NOT NULL RETURNING user_id"""
_IS_KNOWN = """
SELECT %(user)s AS user_id FROM profiles WHERE user_id = %(user)s
UNION ALL SELECT %(user)s FROM conversations WHERE user_id = %(user)s LIMIT 1"""
_MEMORY = "SELECT coalesce(memory, '') AS memory FROM profiles WHERE user_id = %(user)s"
# A user without a row has an empty memory, whose version is that of the empty text.
_SET_MEMORY = """
INSERT INTO profiles (user_id, memory)
SELECT %(user)s, nullif(%(text)s::text, '')
WHERE %(may_be_empty)s OR EXISTS (SELECT FROM profiles WHERE user_id = %(user)s)
ON CONFLICT (user_id) DO UPDATE SET memory = excluded.memory
WHERE %(versions)s::text[] IS NULL
    OR encode(sha256(convert_to(coalesce(profiles.memory, ''), 'UTF8')), 'hex') = ANY (%(versions)s)
RETURNING user_id"""
_ADD_TO_MEMORY = """
INSERT INTO profiles (user_id, memory) VALUES (%(user)s, %(text)s)
ON CONFLICT (user_id) DO UPDATE
SET memory = concat_ws(E'\\n', nullif(rtrim(profiles.memory, E' \\t\\r\\n'), ''), excluded.memory)
WHERE octet_length(coalesce(profiles.memory, '')) + octet_length(excluded.memory) < %(most)s
RETURNING memory"""
_USER_OF_CALENDAR = "SELECT user_id FROM user_of_calendar(%(hash)s)"


@dataclass(frozen=True, slots=True)
class Profile:
    """`name` is how the user wants to be called, empty if they have not said it."""

    name: str = ""
    time_zone: str | None = None


async def load_profile(database: Database, user_id: str) -> Profile:
    return await database.fetch_one(user_id, _PROFILE, Profile) or Profile()


async def change_profile(database: Database, user_id: str, *, name: str | None, time_zone: str | None) -> Profile:
    """Sets what is not None, and returns the profile."""
    changed = await database.fetch_one(user_id, _CHANGE_PROFILE, Profile, name=name, zone=time_zone)
    assert changed is not None
    return changed


async def send_first_time_zone(tx: Transaction, zone: str) -> None:
    """Stores the zone of a request if the user has none yet."""
    await tx.execute(_SET_FIRST_TIME_ZONE, zone=zone)


async def set_first_time_zone(database: Database, user_id: str, zone: str) -> None:
    await database.execute(user_id, _SET_FIRST_TIME_ZONE, zone=zone)


async def load_time_zone(database: Database, user_id: str) -> str | None:
    row = await database.fetch_one(user_id, _TIME_ZONE)
    return row["time_zone"] if row else None


async def is_known(database: Database, user_id: str) -> bool:
    return await database.fetch_one(user_id, _IS_KNOWN) is not None


def version_of(memory: str) -> str:
    return hashlib.sha256(memory.encode()).hexdigest()


async def load_memory(database: Database, user_id: str) -> str:
    row = await database.fetch_one(user_id, _MEMORY)
    return row["memory"] if row else ""


async def set_memory(database: Database, user_id: str, text: str, *, versions: Collection[str] | None) -> bool:
    """Replaces the memory if it has one of these versions, or any with None; returns whether it was replaced."""
    may_be_empty = versions is None or version_of("") in versions
    allowed = None if versions is None else list(versions)
    values = {"text": text, "may_be_empty": may_be_empty, "versions": allowed}
    return await database.fetch_one(user_id, _SET_MEMORY, **values) is not None


async def add_to_memory(database: Database, user_id: str, text: str, *, most: int) -> str | None:
    """Adds a text on lines of its own; returns the memory, or None if it would have more than `most` bytes."""
    row = await database.fetch_one(user_id, _ADD_TO_MEMORY, text=text, most=most)
    return row["memory"] if row else None


async def has_calendar(database: Database, user_id: str) -> bool:
    return await database.fetch_one(user_id, _HAS_CALENDAR) is not None


async def set_calendar(database: Database, user_id: str, hash: bytes) -> None:
    await database.execute(user_id, _SET_CALENDAR, hash=hash)


async def revoke_calendar(database: Database, user_id: str) -> bool:
    return await database.fetch_one(user_id, _REVOKE_CALENDAR) is not None


async def find_user_of_calendar(database: Database, hash: bytes) -> str | None:
    row = await database.fetch_one(NO_USER, _USER_OF_CALENDAR, hash=hash)
    return row["user_id"] if row else None
