import asyncio
from collections.abc import Callable
from typing import Any


async def until(condition: Callable[[], Any], *, seconds: float = 30) -> Any:
    """What the condition gives, as soon as it gives something."""
    async with asyncio.timeout(seconds):
        while not (found := condition()):
            await asyncio.sleep(0.01)
        return found
