"""Requests under an idempotency key: the same request is carried out once and answered the same each time."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from pydantic import BaseModel

from backend.conversations.errors import KeyOutcomeUnknown, KeyStored, KeyUsed
from backend.errors import BackendError, InvalidRequest
from backend.users import idempotency
from backend.users.idempotency import IdempotencyKey, StoredRequest
from common.database import Database

_KEY = re.compile(r"[\x21-\x7e]{1,255}")
_FIRST_PAUSE, _LONGEST_PAUSE, _WAIT_SECONDS = 0.1, 2.0, 30.0

T = TypeVar("T")


def check_key(key: object, name: str) -> None:
    if not isinstance(key, str) or not _KEY.fullmatch(key):
        raise InvalidRequest(f"{name} must have 1 to 255 visible ASCII characters.")


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
            await idempotency.send_key(tx, key)
    except KeyStored:
        return await _wait_for_response(database, user_id, key)
    try:
        content = (await act()).model_dump(mode="json")
    except BackendError:
        await idempotency.give_up(database, user_id, key)
        raise
    await idempotency.store_response(database, user_id, key, status=status, content=content)
    return content


async def _find(database: Database, user_id: str, key: IdempotencyKey) -> StoredRequest | None:
    stored = await idempotency.find(database, user_id, key)
    if stored is not None and bytes(stored.request) != key.request:
        raise KeyUsed
    return stored


async def _wait_for_response(database: Database, user_id: str, key: IdempotencyKey) -> dict[str, Any]:
    """Waits while another request with this key is carried out; raises as `carry_out_once` does."""
    pause = _FIRST_PAUSE
    while True:
        stored = await _find(database, user_id, key)
        if stored is None:
            raise KeyStored  # the other one was rejected: this one may be sent again
        if stored.content is not None:
            return stored.content
        if stored.seconds > _WAIT_SECONDS:
            raise KeyOutcomeUnknown
        await asyncio.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE)
