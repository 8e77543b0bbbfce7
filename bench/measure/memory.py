"""What one more connection costs in the backend's memory."""

import asyncio

from bench import processes
from bench.drivers.client import Client
from bench.drivers.product import message
from bench.rows import Row
from bench.stage import Stage

_REACHED_SECONDS = 1.0
KIB = 1024


async def idle(stage: Stage) -> Row:
    count = stage.scale.connections
    figures: list[float] = []
    for server in (stage.backend, stage.endpoint):
        client = Client(server.port)
        await client.open(1)
        before = processes.memory(server.pid)
        await client.open(count)
        figures.append(_each(processes.memory(server.pid) - before, count))
        client.close()
    figure, baseline = figures
    return Row("memory of an idle connection", figure, "KiB", baseline, "FastAPI", _ratio(figure, baseline))


async def streaming(stage: Stage) -> Row:
    """Of turns held open in the middle of an answer."""
    count = stage.scale.connections
    before = processes.memory(stage.backend.pid)
    streams = await asyncio.gather(*[_held(stage) for _ in range(count)])
    await asyncio.sleep(_REACHED_SECONDS)
    figure = _each(processes.memory(stage.backend.pid) - before, count)
    await stage.model.post("/release", {})
    await asyncio.gather(*streams)
    before = processes.memory(stage.floor.pid)
    await stage.floor.hold("wait", count, seconds=_REACHED_SECONDS)
    baseline = _each(processes.memory(stage.floor.pid) - before, count)
    await stage.model.post("/release", {})
    await stage.floor.release()
    return Row("memory of a streaming turn", figure, "KiB", baseline, "Agents SDK", _ratio(figure, baseline))


async def _held(stage: Stage) -> asyncio.Future[None]:
    return await stage.chat.http.hold("/chatkit", message(next(stage.threads), "wait"))


def _each(total: int, count: int) -> float:
    return max(total, 0) / count / KIB


def _ratio(figure: float, baseline: float) -> float | None:
    return figure / baseline if baseline else None
