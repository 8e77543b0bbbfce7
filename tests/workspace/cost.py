"""What a command costs in each confinement, beside the same process without one: `python -m tests.workspace.cost`."""

import asyncio
import os
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.workspace.kinds import made, usable
from workspace.commands.running import run

TIMES, AT_ONCE = 30, 40
ARGV = ["true"]


@dataclass(frozen=True)
class Cost:
    kind: str
    median_ms: float
    processor_ms: float
    at_once_seconds: float


async def cost(kind: str, *, times: int = TIMES, at_once: int = AT_ONCE) -> Cost:
    """One after the other, and so many at once."""
    confinement = made(kind)
    with tempfile.TemporaryDirectory() as place:
        seconds: list[float] = []
        used = _processor_seconds()
        for _ in range(times):
            began = time.perf_counter()
            await run(confinement, Path(place), ARGV, timeout_s=60)
            seconds.append(time.perf_counter() - began)
        used = _processor_seconds() - used
        folders = [Path(place, str(number)) for number in range(at_once)]
        for folder in folders:
            os.mkdir(folder)
        began = time.perf_counter()
        await asyncio.gather(*(run(confinement, folder, ARGV, timeout_s=60) for folder in folders))
        together = time.perf_counter() - began
    return Cost(kind, statistics.median(seconds) * 1_000, used / times * 1_000, together)


def table(costs: list[Cost]) -> Iterator[str]:
    yield f"{'':24}{'median':>10}{'processor':>12}{'40 at once':>12}"
    for one in costs:
        yield f"{one.kind:24}{one.median_ms:>7.1f} ms{one.processor_ms:>9.1f} ms{one.at_once_seconds:>10.2f} s"


def _processor_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    sys.stdout.write("\n".join(table([asyncio.run(cost(kind)) for kind in ["none", *usable()]])) + "\n")
