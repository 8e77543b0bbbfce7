"""A request that is sent again under its key is answered as before: what it asks for is done once."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncEngine

from backend.conversation.runs import kept
from backend.conversation.runs.kept import Kept, Keyed
from backend.errors import BackendError
from backend.turn.turn import Turn

_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 2.0  # seconds
_LONGEST_SECONDS = 30.0


class OtherRequest(BackendError):
    """This Idempotency-Key was used for another request. Use a new key for each request."""

    code, status = "key_of_other_request", 409


class NotKnown(BackendError):
    """It is unknown whether the first request with this key was done. Look at the chat before you use a new key."""

    code, status = "first_request_unknown", 409


class Answer(NamedTuple):
    status: int
    content: dict[str, Any]


async def begun(engine: AsyncEngine, keyed: Keyed | None, start: Callable[[], Awaitable[Turn]], *, user_id: str) -> str:
    """The id of the run that this request begins, or has begun before."""
    if keyed is None:
        return (await start()).run.id
    if found := await kept.find(engine, keyed, user_id=user_id):
        return _run_of(found, keyed)
    try:
        return (await start()).run.id
    except (BackendError, IntegrityError):  # another with the same key may have been quicker
        found = await kept.find(engine, keyed, user_id=user_id)
        if found is None:
            raise
        return _run_of(found, keyed)


async def answered(
    engine: AsyncEngine, keyed: Keyed | None, act: Callable[[], Awaitable[Answer]], *, user_id: str
) -> Answer:
    """What this request is answered, or was before. Of one that is refused nothing is kept."""
    if keyed is None:
        return await act()
    if earlier := await _earlier(engine, keyed, user_id=user_id):
        return earlier
    try:
        answer = await act()
    except BackendError:
        await kept.give_up(engine, keyed, user_id=user_id)
        raise
    await kept.answer(engine, keyed, answer.status, answer.content, user_id=user_id)
    return answer


async def _earlier(engine: AsyncEngine, keyed: Keyed, *, user_id: str) -> Answer | None:
    """The answer of one that came before; None when this is the first, which is kept from now on."""
    pause = _FIRST_PAUSE
    while not await kept.begin(engine, keyed, user_id=user_id):
        found = await kept.find(engine, keyed, user_id=user_id)
        if found is None:
            continue  # it was refused meanwhile
        _check(found, keyed)
        if found.status is not None:
            return Answer(found.status, found.answer or {})
        if found.seconds > _LONGEST_SECONDS:
            raise NotKnown
        await asyncio.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE)
    return None


def _run_of(found: Kept, keyed: Keyed) -> str:
    _check(found, keyed)
    assert found.run_id is not None, "a request that begins a run is kept with it"
    return found.run_id


def _check(found: Kept, keyed: Keyed) -> None:
    if found.request != keyed.request:
        raise OtherRequest
