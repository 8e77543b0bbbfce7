"""What the measuring itself costs: the driver against an endpoint that does nothing."""

from functools import partial

from bench.drivers import load
from bench.drivers.load import Timing
from bench.stage import Stage


async def driver(stage: Stage) -> str:
    async def call() -> Timing:
        return (await stage.model.post("/nothing", {}))[0]

    done = await load.run(partial(call), callers=16, seconds=stage.scale.seconds / 2)
    return f"The driver makes {done.rate:,.0f} requests a second of 16 callers to an endpoint that does nothing."
