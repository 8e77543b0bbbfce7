"""Texts that users type are read one at a time, and others are served in between."""

import asyncio
import time
from itertools import pairwise

from backend.api.tasks.text_reader import TextReader

SECONDS = 0.01  # of processor time for one text


async def test_others_are_served_between_two_texts_and_users_take_turns() -> None:
    """Else the longest texts of one user, sent at once, hold up all users, although each of them is short enough."""
    reader, reads = TextReader(), list[tuple[str, float, float]]()

    async def read(user: str) -> None:
        def work() -> None:
            began, worked = time.monotonic(), time.thread_time() + SECONDS
            while time.thread_time() < worked:
                pass
            reads.append((user, began, time.monotonic()))

        await reader.read(user, work)

    await asyncio.gather(*(read(user) for user in ("eve", "eve", "eve", "ada")))
    assert [user for user, _, _ in reads] == ["eve", "eve", "ada", "eve"]
    gaps = [after[1] - before[2] for before, after in pairwise(reads)]
    assert min(gaps) > 2 * SECONDS
