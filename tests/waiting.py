import asyncio
from collections.abc import Callable
from typing import Any


async def until(condition: Callable[[], Any], *, seconds: float = 30) -> Any:
    """Waits until the condition returns a true value, and returns it."""
    async with asyncio.timeout(seconds):
        while not (result := condition()):
            await asyncio.sleep(0.01)
        return result
