import asyncio
import inspect
from collections.abc import Callable
from typing import Any

WAIT_SECONDS = 240
"""How long to wait for what must happen, also on a machine that has ten times as much to do."""


async def until(condition: Callable[[], Any], *, seconds: float = WAIT_SECONDS) -> Any:
    """Waits until the condition, which may be a coroutine function, returns a true value, and returns it."""
    result = None
    timeout = asyncio.timeout(seconds)
    try:
        async with timeout:
            while True:
                returned = condition()
                result = await returned if inspect.isawaitable(returned) else returned
                if result:
                    return result
                await asyncio.sleep(0.01)
    except TimeoutError as error:
        if not timeout.expired():
            raise
        raise AssertionError(f"not within {seconds} s: {condition!r} returned {result!r}") from error
