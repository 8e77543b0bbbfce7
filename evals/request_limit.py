import asyncio
import time

MINUTE = 60.0


class RequestLimit:
    """Keeps to a provider's requests a minute by pauses between messages, never in the middle of one."""

    def __init__(self, per_minute: float | None) -> None:
        self._seconds = MINUTE / per_minute if per_minute else 0.0
        self._free_at = 0.0

    async def wait(self) -> None:
        """Waits until the requests so far are within the limit."""
        await asyncio.sleep(max(0.0, self._free_at - time.monotonic()))
        self._free_at = time.monotonic()

    def count(self, requests: int) -> None:
        self._free_at += requests * self._seconds
