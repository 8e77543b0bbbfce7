import asyncio

from backend.heartbeat import Heartbeat
from database import create_engine
from tests.backend.test_turns import Rows, until

WAITING = "SELECT 1 FROM pg_locks WHERE relation = 'runs'::regclass AND NOT granted"
LISTENING = "SELECT 1 FROM pg_stat_activity WHERE query LIKE 'LISTEN%%' AND state = 'idle'"


async def test_its_end_leaves_no_connection_in_use(database_url: str, rows: Rows) -> None:
    engine = create_engine(database_url)
    rows("BEGIN")
    rows("LOCK TABLE runs")
    heartbeat = Heartbeat(engine, ["run_1"], lambda *_: None, every_seconds=0.01, lease_seconds=60)
    beating = asyncio.create_task(heartbeat.run())
    await until(lambda: rows(WAITING) and rows(LISTENING))
    beating.cancel()
    await asyncio.gather(beating, return_exceptions=True)
    in_use = engine.pool.checkedout()  # pyright: ignore[reportAttributeAccessIssue]
    rows("COMMIT")
    await engine.dispose()
    assert in_use == 0
