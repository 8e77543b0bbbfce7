"""Requests that a program may send again under the same key: what was done is not done twice, for 24 hours."""

from dataclasses import dataclass
from typing import Any

from psycopg.types.json import Jsonb

from common.database import NO_USER, Database, Transaction

MOST = 10_000
"""How many keys of one user are kept."""

_FORGET_OLD = """
DELETE FROM kept_requests
WHERE user_id = %(user)s AND key = %(key)s AND created_at < now() - interval '24 hours'"""
_FIND = """
SELECT request, run_id, status, answer AS content, extract(epoch FROM now() - created_at)::float8 AS seconds
FROM kept_requests WHERE user_id = %(user)s AND key = %(key)s"""
_ADD = "SELECT keep_request(%(key)s, %(request)s, %(run)s, %(most)s)"
_ANSWER = """
UPDATE kept_requests SET status = %(status)s, answer = %(content)s WHERE user_id = %(user)s AND key = %(key)s"""
_GIVE_UP = """
DELETE FROM kept_requests WHERE user_id = %(user)s AND key = %(key)s AND run_id IS NULL AND status IS NULL"""

_SWEEP = "SELECT count(*) FROM public.sweep_kept_requests(24, 1000)"


@dataclass(frozen=True, slots=True)
class IdempotencyKey:
    """A key with a hash of all that its request asks for."""

    key: str
    request: bytes


@dataclass(frozen=True, slots=True)
class StoredRequest:
    """What became of a request: the run that it started, a response, or neither yet; `seconds` is its age."""

    request: bytes
    run_id: str | None
    status: int | None
    content: dict[str, Any] | None
    seconds: float


async def find(database: Database, user_id: str, key: IdempotencyKey) -> StoredRequest | None:
    """Loads what is stored under a key; None if nothing is, or it was more than a day ago: that is deleted."""
    async with database.transaction(user_id) as tx:
        await tx.execute(_FORGET_OLD, key=key.key)
        found = await tx.execute(_FIND, StoredRequest, key=key.key)
    return await found.fetchone()


async def send_key(tx: Transaction, key: IdempotencyKey, *, run_id: str | None = None) -> None:
    """Stores a key; the transaction fails with `KeyStored` if it exists, and with `LimitReached` at `MOST`."""
    await tx.execute(_ADD, key=key.key, request=key.request, run=run_id, most=MOST)


async def store_response(
    database: Database, user_id: str, key: IdempotencyKey, *, status: int, content: dict[str, Any]
) -> None:
    await database.execute(user_id, _ANSWER, key=key.key, status=status, content=Jsonb(content))


async def give_up(database: Database, user_id: str, key: IdempotencyKey) -> None:
    await database.execute(user_id, _GIVE_UP, key=key.key)


async def sweep(database: Database) -> None:
    await database.execute(NO_USER, _SWEEP)
