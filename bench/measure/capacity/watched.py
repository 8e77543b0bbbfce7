"""What a process takes while something happens, looked at once a second."""

import asyncio
import re
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from statistics import mean, median

import psycopg

from bench.processes import cpu_seconds, descriptors, memory
from bench.stage import Place, Product

_CONNECTIONS = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'todo'"


@dataclass(frozen=True)
class Look:
    """`at` is in seconds since the first."""

    at: float
    cpu: float
    memory: float
    reading: float
    tasks: float = 0
    descriptors: float = 0
    connections: float = 0
    tool_server_memory: float = 0
    tool_server_descriptors: float = 0


@dataclass
class Looks:
    taken: list[Look] = field(default_factory=list[Look])

    def busy(self, *, after: float) -> float:
        """The share of a core that the process computed after so many seconds."""
        [first, *_, last] = [look for look in self.taken if look.at >= after]
        return (last.cpu - first.cpu) / (last.at - first.at)

    def mean(self, of: Callable[[Look], float], *, after: float) -> float:
        """Of the looks after so many seconds."""
        return mean(of(look) for look in self.taken if look.at >= after)

    def ends(self, of: Callable[[Look], float], *, after: float) -> tuple[float, float]:
        """The medians of the first and of the last quarter of what is after so many seconds."""
        values = [of(look) for look in self.taken if look.at >= after]
        quarter = max(1, len(values) // 4)
        return median(values[:quarter]), median(values[-quarter:])


@asynccontextmanager
async def watched(
    place: Place, product: Product, reading: Callable[[], int], *, seconds: float, all_of_it: bool = False
) -> AsyncIterator[Looks]:
    """Looks for so long, so that what ends after that is not looked at; `all_of_it` costs more."""
    looks, began = Looks(), time.perf_counter()
    every = min(1.0, seconds / 20)

    async def look() -> None:
        while (at := time.perf_counter() - began) <= seconds:
            more = await _more(place, product) if all_of_it else {}
            pid = product.backend.pid
            looks.taken.append(Look(at, cpu_seconds(pid), memory(pid), reading(), **more))
            await asyncio.sleep(every)

    looking = asyncio.create_task(look())
    yield looks
    await looking


async def _more(place: Place, product: Product) -> dict[str, float]:
    return {
        "tasks": await gauge(product, "todo_backend_tasks"),
        "descriptors": descriptors(product.backend.pid),
        "tool_server_memory": memory(product.mcp.pid),
        "tool_server_descriptors": descriptors(product.mcp.pid),
        "connections": await asyncio.to_thread(_connections, place.admin_url),
    }


async def gauge(product: Product, name: str) -> float:
    _, told = await product.chat.http.get("/metrics")
    found = re.search(rf"^{name} (\S+)$", told.decode(), re.MULTILINE)
    assert found, f"the backend tells no {name}"
    return float(found[1])


def _connections(url: str) -> int:
    with psycopg.connect(url) as connection:
        return connection.execute(_CONNECTIONS).fetchall()[0][0]
