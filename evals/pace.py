"""How fast the model is asked: by a free tier's requests a minute."""

import asyncio
import time

MINUTE = 60.0


class Pace:
    """What was asked at once is paid for afterwards, so a message is never held up in the middle."""

    def __init__(self, per_minute: float | None) -> None:
        self._seconds = MINUTE / per_minute if per_minute else 0.0
        self._free_at = 0.0

    async def wait(self) -> None:
        """Until the model may be asked."""
        await asyncio.sleep(max(0.0, self._free_at - time.monotonic()))
        self._free_at = time.monotonic()

    def asked(self, requests: int) -> None:
        """Since the last wait."""
        self._free_at += requests * self._seconds
