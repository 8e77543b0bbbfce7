from sqlalchemy import func, select

from bench.measure.database import relayed
from service.database import create_engine, stepwise


async def test_it_tells_how_long_a_statement_takes_in_the_middle_of_a_pipeline(database_url: str) -> None:
    async with relayed(database_url) as relay:
        engine = create_engine(relay.url)
        async with stepwise(engine, "alice") as session:
            relay.waits.clear()
            await session.scalar(select(func.pg_sleep(0.2)))
        await engine.dispose()
    assert 0.2 <= max(relay.waits) < 10
