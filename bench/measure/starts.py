"""Starts of everything together, and what the first turn after one costs."""

import asyncio
import sys
import time
from statistics import median

from bench.drivers.product import Chat
from bench.processes import Server, free_port
from bench.rows import Row
from bench.stage import Place

_LIBRARIES = ("import agents, chatkit.server, fastapi, sqlmodel", "import fastmcp, sqlmodel")


async def starts(place: Place) -> list[Row]:
    """Cold: with no database yet. Warm: with that of the run before."""
    seconds: list[float] = []
    firsts: list[tuple[float, float]] = []
    for _ in range(2):
        began = time.perf_counter()
        everything = _up(place)
        try:
            await everything.ready()
            seconds.append(time.perf_counter() - began)
            firsts.append(await _first_and_later(everything.port, place.scale.later))
        finally:
            await everything.stop()
    imports = await _import_seconds()
    first, later = (median(values) for values in zip(*firsts, strict=True))
    ratio = median(one / other for one, other in firsts)
    return [
        *[
            Row(f"{name} start", taken, "s", imports, "imports", taken / imports)
            for name, taken in zip(("cold", "warm"), seconds, strict=True)
        ],
        Row("first turn after /ready", first, "ms", later, f"the {place.scale.later}th", ratio),
    ]


def _up(place: Place) -> Server:
    port = free_port()
    directory = str(place.work / "up")
    options = ["up", "--port", str(port), "--mcp-port", str(free_port()), "--data-dir", directory]
    # Set to nothing, so that a developer's .env does not name another.
    own = {"DATABASE_URL": "", "WORKSPACE_PORT": str(free_port())}
    return Server(place.work, "cli", *options, port=port, **own, **place.model_settings)


async def _first_and_later(port: int, later: int) -> tuple[float, float]:
    """The later one is that of twenty around it."""
    chat = Chat(port)
    taken = [(await chat.create("add milk"))[0].total * 1000 for _ in range(later + 10)]
    return taken[0], median(taken[later - 10 :])


async def _import_seconds() -> float:
    """What two processes take that only import the services' libraries, side by side as those start."""
    began = time.perf_counter()
    both = [await asyncio.create_subprocess_exec(sys.executable, "-c", libraries) for libraries in _LIBRARIES]
    for process in both:
        await process.wait()
    return time.perf_counter() - began
