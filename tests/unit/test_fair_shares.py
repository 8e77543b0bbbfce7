"""Shares of places: who is let in, who waits, and who is rejected."""

import asyncio
import random
import tracemalloc
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import pytest

from common.fair_shares import FairQueue, QueueTimeout, Release, ShareExceeded, SimultaneousLimit
from tests.waiting import until


def create_queue(
    places: int, share: int | None = None, *, most_waiting: int = 100, timeout_seconds: float = 60
) -> FairQueue:
    return FairQueue(places, share, most_waiting=most_waiting, timeout_seconds=timeout_seconds)


@asynccontextmanager
async def hold(queue: FairQueue, user_id: str) -> AsyncIterator[Release]:
    release = await queue.take(user_id)
    try:
        yield release
    finally:
        release()


@contextmanager
def hold_at_once(limit: SimultaneousLimit, user_id: str) -> Iterator[Release]:
    release = limit.take(user_id)
    try:
        yield release
    finally:
        release()


class Callers:
    """Callers who wait for a place of a queue, and hold it until they are told to leave."""

    def __init__(self, queue: FairQueue) -> None:
        self._queue = queue
        self.served = list[str]()
        """The users in the order in which their callers were let in."""
        self.inside = list[tuple[str, asyncio.Event]]()

    async def come(self, *user_ids: str) -> list[asyncio.Task[None]]:
        tasks = [asyncio.create_task(self._hold(user_id)) for user_id in user_ids]
        await asyncio.sleep(0)
        return tasks

    async def _hold(self, user_id: str) -> None:
        async with hold(self._queue, user_id):
            self.served.append(user_id)
            self.inside.append((user_id, leaves := asyncio.Event()))
            await leaves.wait()

    async def leave_in_turn(self) -> None:
        """Lets the callers leave in the order in which they came in."""
        while self.inside:
            _, leaves = self.inside.pop(0)
            leaves.set()
            await settle()


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_one_user_has_only_a_share_of_the_places() -> None:
    callers = Callers(create_queue(5, 3))
    await callers.come(*["eve"] * 10, "ada", "bob", "cem")
    assert callers.served == ["eve", "eve", "eve", "ada", "bob"]


async def test_users_are_served_in_turn() -> None:
    callers = Callers(create_queue(1))
    await callers.come(*["eve"] * 4, "ada", "ada", "bob")
    await callers.leave_in_turn()
    assert callers.served == ["eve", "eve", "ada", "bob", "eve", "ada", "eve"]


async def test_a_user_whose_share_is_used_up_does_not_hold_up_others() -> None:
    callers = Callers(create_queue(3, 2))
    await callers.come("eve", "eve", "ada", "eve", "eve", "bob")
    assert callers.served == ["eve", "eve", "ada"]
    callers.inside[2][1].set()
    await settle()
    assert callers.served == ["eve", "eve", "ada", "bob"]


@pytest.mark.parametrize(("held_by", "error"), [("eve", ShareExceeded), ("ada", QueueTimeout)])
async def test_only_the_user_who_holds_the_places_is_to_blame_for_a_timeout(
    held_by: str, error: type[Exception]
) -> None:
    queue = create_queue(1, 1, timeout_seconds=0.02)
    async with hold(queue, held_by):
        with pytest.raises(error):
            await queue.take("eve")
    async with hold(queue, "eve"):  # who gave up waiting is not let in later
        pass


async def test_more_waiting_callers_of_a_user_are_rejected_at_once() -> None:
    queue = create_queue(1, most_waiting=2)
    callers = Callers(queue)
    await callers.come("eve", "eve", "eve", "ada")
    with pytest.raises(ShareExceeded):
        await queue.take("eve")
    await callers.leave_in_turn()
    assert callers.served == ["eve", "eve", "ada", "eve"]


async def test_a_place_can_be_given_back_early_and_only_once() -> None:
    queue = create_queue(1)
    async with hold(queue, "ada") as release:
        release()
        release()
        callers = Callers(queue)
        await callers.come("bob", "cem")
    assert callers.served == ["bob"]


async def test_cancelled_callers_take_no_place_with_them() -> None:
    random_numbers = random.Random(53)
    queue = create_queue(3, 2)

    async def come_in(user_id: str) -> None:
        async with hold(queue, user_id):
            await asyncio.sleep(random_numbers.random() * 0.001)

    for _ in range(100):
        tasks = [asyncio.create_task(come_in(random_numbers.choice("abc"))) for _ in range(12)]
        for task in tasks:
            if random_numbers.random() < 0.5:
                await asyncio.sleep(random_numbers.random() * 0.0005)
                task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    callers = Callers(queue)
    await callers.come(*"aaabbb")
    assert callers.served == ["a", "a", "b"]


async def test_a_caller_who_is_cancelled_as_its_turn_comes_lets_the_next_one_in() -> None:
    queue = create_queue(1)
    release = await queue.take("ada")
    callers = Callers(queue)
    cancelled, *_ = await callers.come("bob", "cem")
    release()
    cancelled.cancel()
    await until(lambda: callers.served == ["cem"])


async def test_nothing_is_stored_of_users_who_are_gone() -> None:
    queue = create_queue(2, 1, timeout_seconds=0.001)

    async def use(count: int) -> int:
        """Returns the memory in use after some users, whose names are long, have come and gone."""
        for n in range(count):
            name = f"user{n}" * 1_000
            async with hold(queue, name):
                with pytest.raises(ShareExceeded):
                    await queue.take(name)
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        before = await use(20)
        assert await use(500) - before < 300_000  # about a tenth of their names
    finally:
        tracemalloc.stop()


def test_a_limit_rejects_what_one_user_has_beyond_it() -> None:
    limit = SimultaneousLimit(2)
    with hold_at_once(limit, "eve"), hold_at_once(limit, "eve") as release:
        with pytest.raises(ShareExceeded), hold_at_once(limit, "eve"):
            pass
        with hold_at_once(limit, "ada"):
            release()
        with hold_at_once(limit, "eve"):
            assert not limit.allows("eve")


def test_without_a_limit_nothing_is_rejected() -> None:
    limit = SimultaneousLimit(None)
    assert [limit.take("eve") for _ in range(1_000)]
