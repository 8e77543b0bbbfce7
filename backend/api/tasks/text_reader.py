"""Reads the texts that users type as tasks and dates, one at a time."""

import asyncio
import time
from collections.abc import Callable
from typing import TypeVar

from common.fair_shares import FairQueue

T = TypeVar("T")

_REST = 3.0  # times as long as a text took, so that others have three quarters of the event loop


class TextReader:
    """Lets users take turns, and leaves the event loop to others after each text.

    The longest texts take a hundredth of a second, and several would be read in one round of the event loop, of which
    an answer needs dozens.
    """

    def __init__(self) -> None:
        self._turns = FairQueue(1, None)

    async def read(self, user_id: str, read: Callable[[], T]) -> T:
        release = await self._turns.take(user_id)
        began = time.thread_time()  # without what other processes take
        try:
            return read()
        finally:
            rest = _REST * (time.thread_time() - began)
            asyncio.get_running_loop().call_later(rest, release)
