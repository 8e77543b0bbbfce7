import asyncio
from contextlib import AsyncExitStack

from backend.turn.lifecycle.heartbeat import Heartbeat
from service.database import create_engine
from tests.backend.conftest import Rows
from tests.chatkit_client import ChatKit, user_input
from tests.scripted_model import ScriptedModel
from tests.waiting import until

WAITING = "SELECT 1 FROM pg_locks WHERE relation = 'runs'::regclass AND NOT granted"
LISTENING = "SELECT 1 FROM pg_stat_activity WHERE query LIKE 'LISTEN%%' AND state = 'idle'"


async def test_its_end_leaves_no_connection_in_use(database_url: str, rows: Rows) -> None:
    engine = create_engine(database_url)
    rows("BEGIN")
    rows("LOCK TABLE runs")
    heartbeat = Heartbeat(engine, {"run_1": None}, lambda *_: None, every_seconds=0.01, lease_seconds=60)
    beating = asyncio.create_task(heartbeat.run())
    await until(lambda: rows(WAITING) and rows(LISTENING))
    beating.cancel()
    await asyncio.gather(beating, return_exceptions=True)
    in_use = engine.pool.checkedout()  # pyright: ignore[reportAttributeAccessIssue]
    rows("COMMIT")
    await engine.dispose()
    assert in_use == 0


async def test_a_process_does_not_end_its_own_runs_as_abandoned(database_url: str, rows: Rows) -> None:
    """However late it is with a beat: it is there, and may be the next one to beat."""
    engine = create_engine(database_url)
    for name in ("mine", "gone"):
        rows(
            "INSERT INTO runs (id, user_id, status, heartbeat_at) "
            "VALUES (%s, 'alice', 'running', now() - interval '1 hour')",
            name,
        )
    heartbeat = Heartbeat(engine, {"mine": None}, lambda *_: None, every_seconds=60, lease_seconds=0.05)
    beating = asyncio.create_task(heartbeat.run())
    await until(lambda: rows("SELECT 1 FROM runs WHERE id = 'gone' AND outcome = 'interrupted'"))
    rows("INSERT INTO runs (id, user_id, status, heartbeat_at) VALUES ('late', 'bob', 'running', '2020-01-01')")
    await until(lambda: rows("SELECT 1 FROM runs WHERE id = 'late' AND outcome = 'interrupted'"))
    beating.cancel()
    await asyncio.gather(beating, return_exceptions=True)
    await engine.dispose()
    assert rows("SELECT status FROM runs WHERE id = 'mine'") == [{"status": "running"}]


async def test_a_pool_in_use_costs_no_lease(chat: ChatKit, model: ScriptedModel, rows: Rows) -> None:
    await model.script({"text": "one two three four", "token_delay": 0.6, "chunk_chars": 4})
    engine = chat.app.state.parts.engine  # pyright: ignore[reportAttributeAccessIssue]
    async with chat.open("threads.create", input=user_input("count")) as events, AsyncExitStack() as held:
        await anext(events)
        for _ in range(10):
            await held.enter_async_context(engine.connect())
        await asyncio.sleep(1)
        [run] = rows("SELECT extract(epoch FROM clock_timestamp() - heartbeat_at)::float AS age FROM runs")
    assert run["age"] < 0.5
