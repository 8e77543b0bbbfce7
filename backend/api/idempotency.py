"""Requests under an idempotency key: the same request is carried out once and answered the same each time."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from backend.conversations.errors import KeyOutcomeUnknown, KeyStored, KeyUsed
from backend.errors import BackendError
from backend.users import idempotency
from backend.users.idempotency import IdempotencyKey, StoredRequest
from common.database import Database

_FIRST_PAUSE, _LONGEST_PAUSE, _WAIT_SECONDS = 0.1, 2.0, 30.0

Response = tuple[int, dict[str, Any]]
"""An HTTP status and a body."""


async def find_started_run(database: Database, user_id: str, key: IdempotencyKey | None) -> str | None:
    """Returns the run that this request has started before. Raises `KeyUsed` if the key is another request's."""
    stored = await _find(database, user_id, key) if key is not None else None
    return stored.run_id if stored is not None else None


async def carry_out_once(
    database: Database, user_id: str, key: IdempotencyKey | None, act: Callable[[], Awaitable[Response]]
) -> Response:
    """Carries out a request and stores its response under the key; returns the stored one if it came before.

    An error is not stored. Raises `KeyUsed`, `KeyOutcomeUnknown` if the process that carried it out has died, and
    `KeyStored` if it was rejected.
    """
    if key is None:
        return await act()
    try:
        async with database.transaction(user_id) as tx:
            await idempotency.send_key(tx, key)
    except KeyStored:
        return await _stored_response(database, user_id, key)
    try:
        status, content = await act()
    except BackendError:
        await idempotency.give_up(database, user_id, key)
        raise
    await idempotency.store_response(database, user_id, key, status=status, content=content)
    return status, content


async def _find(database: Database, user_id: str, key: IdempotencyKey) -> StoredRequest | None:
    stored = await idempotency.find(database, user_id, key)
    if stored is not None and bytes(stored.request) != key.request:
        raise KeyUsed
    return stored


async def _stored_response(database: Database, user_id: str, key: IdempotencyKey) -> Response:
    """Waits while another request with this key is carried out; raises as `carry_out_once` does."""
    pause = _FIRST_PAUSE
    while True:
        stored = await _find(database, user_id, key)
        if stored is None:
            raise KeyStored  # the other one was rejected: this one may be sent again
        if stored.status is not None and stored.content is not None:
            return stored.status, stored.content
        if stored.seconds > _WAIT_SECONDS:
            raise KeyOutcomeUnknown
        await asyncio.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE)
