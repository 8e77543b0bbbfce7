"""Requests under an idempotency key, carried out once and answered the same each time, for some days."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from psycopg.types.json import Jsonb
from pydantic import BaseModel

from backend.errors import BackendError, InvalidRequest
from common.database import NO_USER, Database, Transaction

MAX_KEYS = 10_000
"""How many keys of one user are kept."""

_KEY = re.compile(r"[\x21-\x7e]{1,255}")
_FIRST_PAUSE_SECONDS, _MAX_PAUSE_SECONDS, _WAIT_SECONDS = 0.1, 2.0, 30.0

_FIND = """
SELECT request, run_id, answer AS content, extract(epoch FROM now() - created_at)::float8 AS seconds
FROM kept_requests WHERE user_id = %(user)s AND key = %(key)s"""
_ADD = "SELECT keep_request(%(key)s, %(request)s, %(run)s, %(most)s)"
_ANSWER = """
UPDATE kept_requests SET status = %(status)s, answer = %(content)s WHERE user_id = %(user)s AND key = %(key)s"""
_GIVE_UP = """
DELETE FROM kept_requests WHERE user_id = %(user)s AND key = %(key)s AND run_id IS NULL AND status IS NULL"""

_SWEEP = "SELECT count(*) FROM public.sweep_kept_requests(%(hours)s, 1000)"

T = TypeVar("T")


class KeyUsed(BackendError):
    """This Idempotency-Key was used for another request. Use a new key for each request."""

    code, status = "idempotency_key_used", 409


class KeyStored(BackendError):
    """This request is already being carried out. Wait a moment and send it again with the same key."""

    code, status = "idempotency_key_stored", 409
    allow_retry = True
    retry_seconds = 1


class KeyOutcomeUnknown(BackendError):
    """It is unknown whether the first request with this key was done. Look at the chat before you use a new key."""

    code, status = "idempotency_key_unknown", 409


@dataclass(frozen=True, slots=True)
class IdempotencyKey:
    """A key with a hash of all that its request asks for."""

    key: str
    request: bytes


@dataclass(frozen=True, slots=True)
class _StoredRequest:
    """What became of a request: the run that it started, a response, or neither yet; `seconds` is its age."""

    request: bytes
    run_id: str | None
    content: dict[str, Any] | None
    seconds: float


def check_key(key: object, name: str) -> None:
    if not isinstance(key, str) or not _KEY.fullmatch(key):
        raise InvalidRequest(f"{name} must have 1 to 255 visible ASCII characters.")


async def send_key(tx: Transaction, key: IdempotencyKey, *, run_id: str | None = None) -> None:
    """Stores a key; the transaction fails with `KeyStored` if it exists, and with `LimitReached` at `MAX_KEYS`."""
    await tx.execute(_ADD, key=key.key, request=key.request, run=run_id, most=MAX_KEYS)


@dataclass(frozen=True, slots=True)
class KeyedResponse:
    """A key, and how the response to its request is rendered from the ids of what it has removed."""

    key: IdempotencyKey
    status: int
    render: Callable[[Sequence[str]], BaseModel]

    async def send(self, tx: Transaction, removed: Sequence[str]) -> None:
        """Stores the response in the transaction that has stored the key."""
        content = Jsonb(self.render(removed).model_dump(mode="json"))
        await tx.execute(_ANSWER, key=self.key.key, status=self.status, content=content)


async def start_once(
    database: Database, user_id: str, key: IdempotencyKey | None, start: Callable[[], Awaitable[T]]
) -> T | str:
    """Starts a run and returns what `start` does, or the id of the run that the same request has started before.

    Raises `KeyUsed` if the key is another request's.
    """
    if key is None:
        return await start()
    stored = await _find(database, user_id, key)
    if stored is None or stored.run_id is None:
        try:
            return await start()
        except BackendError:  # another request with this key may have been quicker
            stored = await _find(database, user_id, key)
            if stored is None or stored.run_id is None:
                raise
    return stored.run_id


async def store_once(
    database: Database, user_id: str, key: IdempotencyKey | None, act: Callable[[], Awaitable[BaseModel]]
) -> dict[str, Any]:
    """Returns the response of what `act` does in one transaction with its key, or the one that is stored.

    Raises `KeyUsed` if the key is another request's.
    """
    stored = await _find(database, user_id, key) if key is not None else None
    if stored is None or stored.content is None:
        try:
            return (await act()).model_dump(mode="json")
        except BackendError:  # another request with this key may have been quicker
            stored = await _find(database, user_id, key) if key is not None else None
            if stored is None or stored.content is None:
                raise
    return stored.content


async def carry_out_once(
    database: Database, user_id: str, key: IdempotencyKey | None, act: Callable[[], Awaitable[BaseModel]], status: int
) -> dict[str, Any]:
    """Carries out a request and stores its response, with its HTTP status, under the key; returns the stored one if it
    came before.

    An error is not stored. Raises `KeyUsed`, `KeyOutcomeUnknown` if the process that carried it out has died, and
    `KeyStored` if it was rejected.
    """
    if key is None:
        return (await act()).model_dump(mode="json")
    try:
        async with database.transaction(user_id) as tx:
            await send_key(tx, key)
    except KeyStored:
        return await _wait_for_response(database, user_id, key)
    try:
        content = (await act()).model_dump(mode="json")
    except BackendError:
        await database.execute(user_id, _GIVE_UP, key=key.key)
        raise
    await database.execute(user_id, _ANSWER, key=key.key, status=status, content=Jsonb(content))
    return content


async def _find(database: Database, user_id: str, key: IdempotencyKey) -> _StoredRequest | None:
    stored = await database.fetch_one(user_id, _FIND, _StoredRequest, key=key.key)
    if stored is not None and bytes(stored.request) != key.request:
        raise KeyUsed
    return stored


async def _wait_for_response(database: Database, user_id: str, key: IdempotencyKey) -> dict[str, Any]:
    """Waits while another request with this key is carried out; raises as `carry_out_once` does."""
    pause = _FIRST_PAUSE_SECONDS
    while True:
        stored = await _find(database, user_id, key)
        if stored is None:
            raise KeyStored  # the other one was rejected: this one may be sent again
        if stored.content is not None:
            return stored.content
        if stored.seconds > _WAIT_SECONDS:
            raise KeyOutcomeUnknown
        await asyncio.sleep(pause)
        pause = min(2 * pause, _MAX_PAUSE_SECONDS)


async def sweep(database: Database, days: int) -> None:
    """Deletes keys that are older than so many days, at most a thousand."""
    await database.execute(NO_USER, _SWEEP, hours=24 * days)
