"""A client that asks again until it is answered, as people and programs do."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from todo_client.connection import ApiError, ConnectionLost

T = TypeVar("T")
SECONDS = 150.0  # of asking while everything is killed; a test that hangs is ended after 300 without saying why
_PAUSE_SECONDS = 0.2


class NotDone(Exception):
    """An answer that says why it did not come to its end."""


async def patiently(attempt: Callable[[], Awaitable[T | None]], what: str, conversation: str) -> T:
    """What an attempt gives at last; what is refused for another reason than that it goes on is raised."""
    deadline = time.monotonic() + SECONDS
    error: Exception | None = None
    while time.monotonic() < deadline:
        try:
            if (found := await attempt()) is not None:
                return found
            error = None
        except (ConnectionLost, NotDone) as failure:
            error = failure
        except ApiError as refusal:
            if not ("still answering" in str(refusal) or refusal.status >= 500):
                raise
            error = refusal
        await asyncio.sleep(_PAUSE_SECONDS)
    raise AssertionError(f"{what} in {conversation}: nothing for {SECONDS:.0f} s, at last {error!r}")
