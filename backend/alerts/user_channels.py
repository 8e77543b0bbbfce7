"""The channels of a user, in the order in which they are used. Their targets have secrets, which are not shown."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from psycopg.types.json import Jsonb

from backend.alerts.settings import SWITCH_ON
from backend.errors import LimitReached
from common.database import Database, advisory_locks

MAX_CHANNELS = 10
PUSH = "push"
COLUMNS = "id, kind, name, target, position, is_on, problem, session_id, confirmed_at, last_sent_at, last_shown_at"
LIST = f"SELECT {COLUMNS} FROM alert_channels WHERE user_id = %(user)s ORDER BY position, id"
_FIND = f"SELECT {COLUMNS} FROM alert_channels WHERE user_id = %(user)s AND id = %(id)s"
_LOCK = f"SELECT {advisory_locks.REQUESTS}"
# A name that another channel has gets a number. There are as many candidates as a user can have channels.
_NUMBERED = """
FROM (
    SELECT nth, CASE nth WHEN 1 THEN %(name)s ELSE %(name)s || ' (' || nth || ')' END AS name
    FROM generate_series(1, %(most)s) AS nth
) AS numbered WHERE NOT EXISTS"""
_OTHER = "SELECT FROM alert_channels AS other WHERE other.user_id = %(user)s AND other.name = numbered.name"
# Only after the channel was added: whoever has too many takes the device from nobody.
_RELEASE = """
SELECT release_alert_device(%(hash)s, %(user)s)
WHERE EXISTS (SELECT FROM alert_channels WHERE user_id = %(user)s AND target_hash = %(hash)s AND kind = 'push')"""
# A channel that is added again is on, without a problem, and belongs to the session that has added it.
_ADD = f"""
INSERT INTO alert_channels (user_id, kind, name, target, target_hash, position, session_id)
SELECT %(user)s, %(kind)s, (
    SELECT name {_NUMBERED} ({_OTHER} AND other.target_hash <> %(hash)s) ORDER BY nth LIMIT 1
), %(target)s, %(hash)s, coalesce(max(position), 0) + 1, %(session)s
FROM alert_channels WHERE user_id = %(user)s
HAVING count(*) < %(most)s OR bool_or(target_hash = %(hash)s)
ON CONFLICT (user_id, target_hash) DO UPDATE SET name = excluded.name, target = excluded.target,
    session_id = excluded.session_id, is_on = true, problem = NULL
RETURNING {COLUMNS}"""
# A channel that the user turns on or off has no problem: the page would name it as the reason.
_CHANGE = f"""
UPDATE alert_channels SET name = CASE WHEN %(name)s::text IS NULL THEN name ELSE (
        SELECT numbered.name {_NUMBERED} ({_OTHER} AND other.id <> %(id)s) ORDER BY nth LIMIT 1
    ) END, is_on = coalesce(%(is_on)s, is_on),
    problem = CASE WHEN %(is_on)s::boolean IS NULL THEN problem END
WHERE user_id = %(user)s AND id = %(id)s RETURNING {COLUMNS}"""
# Numbers all again, with the moved one before the one that is now in its position.
_MOVE = """
UPDATE alert_channels SET position = placed.position FROM (
    SELECT id, row_number() OVER (ORDER BY rank, id <> %(id)s, id) AS position FROM (
        SELECT id, CASE WHEN id = %(id)s THEN %(position)s::bigint
            ELSE row_number() OVER (PARTITION BY id = %(id)s ORDER BY alert_channels.position, id)
        END AS rank
        FROM alert_channels WHERE user_id = %(user)s
    ) AS ranked
) AS placed WHERE alert_channels.user_id = %(user)s AND alert_channels.id = placed.id"""
_DELETE = "DELETE FROM alert_channels WHERE user_id = %(user)s AND id = %(id)s RETURNING id"


class TooManyChannels(LimitReached):
    """You have 10 channels, which is the limit. Remove one that you no longer need."""

    code = "too_many_channels"
    allow_retry = False
    retry_seconds = None


@dataclass(frozen=True, slots=True)
class UserChannel:
    """`problem` is a code of `channels.channel.Problem`, or of the sender."""

    id: int
    kind: str
    name: str
    target: dict[str, Any]
    position: int
    is_on: bool
    problem: str | None
    session_id: str | None
    confirmed_at: datetime | None
    """When it first said that it has shown a notification."""
    last_sent_at: datetime | None
    last_shown_at: datetime | None


async def list_channels(database: Database, user_id: str) -> list[UserChannel]:
    return await database.fetch_all(user_id, LIST, UserChannel)


async def find_channel(database: Database, user_id: str, channel_id: int) -> UserChannel | None:
    return await database.fetch_one(user_id, _FIND, UserChannel, id=channel_id)


async def add_channel(
    database: Database, user_id: str, *, kind: str, name: str, target: Mapping[str, Any], session_id: str | None
) -> UserChannel:
    """Adds a channel, or renews the one with the same target; a user without settings is notified from now on.

    A browser that was notified for another user is not any more. Raises `TooManyChannels`; nothing is changed then.
    """
    hashed = hash_target(kind, target)
    values = {"kind": kind, "name": name, "target": Jsonb(target), "hash": hashed, "most": MAX_CHANNELS}
    async with database.transaction(user_id) as tx:
        await tx.execute(_LOCK)  # two would both see the last free place
        await tx.execute(SWITCH_ON)
        cursor = await tx.execute(_ADD, UserChannel, session=session_id if kind == PUSH else None, **values)
        await tx.execute(_RELEASE, hash=hashed)
    channel = await cursor.fetchone()
    if channel is None:
        raise TooManyChannels
    return channel


async def change_channel(
    database: Database,
    user_id: str,
    channel_id: int,
    *,
    name: str | None = None,
    is_on: bool | None = None,
    position: int | None = None,
) -> UserChannel | None:
    """Changes what is not None; returns None if there is no such channel. `position` counts from 1."""
    async with database.transaction(user_id) as tx:
        await tx.execute(_LOCK)
        if position is not None:
            await tx.execute(_MOVE, id=channel_id, position=position)
        cursor = await tx.execute(_CHANGE, UserChannel, id=channel_id, name=name, is_on=is_on, most=MAX_CHANNELS)
    return await cursor.fetchone()


async def delete_channel(database: Database, user_id: str, channel_id: int) -> bool:
    return await database.fetch_one(user_id, _DELETE, id=channel_id) is not None


def hash_target(kind: str, target: Mapping[str, Any]) -> bytes:
    """Returns a hash that is equal for the same target; of a browser, only the address at its push service counts."""
    unique = target["endpoint"] if kind == PUSH else json.dumps(target, sort_keys=True)
    return hashlib.sha256(f"{kind}\n{unique}".encode()).digest()
