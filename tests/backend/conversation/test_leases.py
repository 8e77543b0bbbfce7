from collections.abc import AsyncIterator

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from backend.conversation.errors import Busy, LeaseLost, NotFound
from backend.conversation.models import Conversation
from backend.conversation.runs import leases
from service.database import create_engine, new_id, pipelined, transaction


@pytest.fixture
async def engine(database_url: str) -> AsyncIterator[AsyncEngine]:
    engine = create_engine(database_url, pool_size=1)
    async with transaction(engine, "alice") as session:
        session.add(Conversation(id="thr_1", user_id="alice", status={"type": "active"}))
    yield engine
    await engine.dispose()


async def take(
    engine: AsyncEngine, *, user_id: str = "alice", thread: str = "thr_1", lease: float = 60, worker: str | None = None
) -> str:
    """As `turns` does it: over a stale lease at the second attempt."""
    run_id = new_id("run")
    async with pipelined(engine, user_id) as pipeline:
        await leases.take_over(pipeline, user_id=user_id, conversation_id=thread)
        claimed = await leases.claim(
            pipeline, run_id, user_id=user_id, conversation_id=thread, lease_seconds=lease, worker=worker
        )
    row = await claimed.fetchone()
    if row is None:
        raise NotFound
    if row["claimed"] is None:
        raise Busy
    return run_id


async def end(engine: AsyncEngine, run_id: str, outcome: leases.Outcome = "completed") -> bool:
    async with pipelined(engine, "alice") as pipeline:
        ended = await leases.end(pipeline, run_id, user_id="alice", outcome=outcome, usage=None)
    return await ended.fetchone() is not None


async def test_one_connection_takes_and_ends_many_leases(engine: AsyncEngine) -> None:
    """The driver prepares a statement after a few executions; it must still match the partial index then."""
    for _ in range(12):
        assert await end(engine, await take(engine))


async def test_a_run_ends_once(engine: AsyncEngine) -> None:
    run_id = await take(engine)
    assert await end(engine, run_id)
    assert not await end(engine, run_id, "failed")


async def test_a_held_lease_is_busy_and_a_missing_conversation_is_not_found(engine: AsyncEngine) -> None:
    await take(engine)
    with pytest.raises(Busy):
        await take(engine)
    for thread, user_id in (("thr_2", "alice"), ("thr_1", "bob")):
        with pytest.raises(NotFound):
            await take(engine, thread=thread, user_id=user_id)


async def test_a_stale_lease_changes_hands_and_fences_its_old_holder(engine: AsyncEngine) -> None:
    paused = await take(engine, lease=0.0001)
    taken = await take(engine)
    async with transaction(engine, "alice") as session:
        await leases.hold(session, taken, user_id="alice")
        with pytest.raises(LeaseLost):
            await leases.hold(session, paused, user_id="alice")
    assert not await end(engine, paused)
    assert await end(engine, taken)


async def test_a_waiting_run_keeps_its_lease_however_old(engine: AsyncEngine) -> None:
    run_id = await take(engine, lease=0.0001)
    async with transaction(engine, "alice") as session:
        run = await session.get_one(leases.Run, ("alice", run_id))
        run.status = "waiting"
        session.add(run)
    with pytest.raises(Busy):
        await take(engine)
