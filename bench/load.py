"""How many answers a backend process streams at once, and what happens at half and at twice that load.

Answers arrive in a Poisson process of a fixed seed, whether earlier ones have ended or not, and are measured from when
they were due. The model streams 50 tokens a second.
"""

import asyncio
import random
import re
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from statistics import mean, median

import psycopg

from bench.client import add_message
from bench.processes import cpu_seconds, descriptors, memory
from bench.report import Row, percentile
from bench.services import Services

TOKENS_A_SECOND, ANSWER_SECONDS = 50, 30
_MORE_A_SECOND = 4  # while the capacity is looked for
_LONGEST_SEARCH = 120  # seconds
_LATE_MS = 100  # a token's gap that shows that no more answers are carried
_END_SECONDS = 30  # within which answers end whose readers have left
_MIB = 1024 * 1024
_CONNECTIONS = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'todo'"
_FAILED, _REJECTED = re.compile(rb'"type":"error".*?"message":"(.*?)"'), b"The assistant is busy"


@dataclass(slots=True)
class _Meter:
    """What the readers of a phase have seen. Times are in seconds since an answer was due, gaps in milliseconds."""

    reading: int = 0
    firsts: list[float] = field(default_factory=list[float])
    rejections: list[float] = field(default_factory=list[float])
    failures: list[str] = field(default_factory=list[str])
    gaps: Counter[int] = field(default_factory=Counter[int])

    def gap_percentile(self, percent: int) -> int:
        left = self.gaps.total() * percent / 100
        for gap, count in sorted(self.gaps.items()):
            left -= count
            if left <= 0:
                return gap
        return 0


@dataclass(frozen=True, slots=True)
class _Sample:
    """What the services use at a time, in seconds since the phase began."""

    at: float
    cpu: float
    reading: int
    used: dict[str, float]


@dataclass(frozen=True, slots=True)
class _Phase:
    name: str
    meter: _Meter
    samples: Sequence[_Sample]

    @property
    def streams(self) -> float:
        return mean(sample.reading for sample in self.samples)

    @property
    def core_percent(self) -> float:
        first, last = self.samples[0], self.samples[-1]
        return 100 * (last.cpu - first.cpu) / (last.at - first.at)

    def growth(self) -> list[Row]:
        """Compares what is used in the last quarter of the phase with the first."""
        quarter = max(1, len(self.samples) // 4)
        rows: list[Row] = []
        for name in self.samples[0].used:
            values = [sample.used[name] for sample in self.samples]
            before, after = median(values[:quarter]), median(values[-quarter:])
            unit = "MiB" if "memory" in name else ""
            rows.append(Row(f"{self.name}: {name} at the end", after, unit, before, "before", after / (before or 1)))
        return rows


class Load:
    """`seconds` is the length of each phase."""

    def __init__(self, services: Services, seconds: float) -> None:
        self._services, self._seconds = services, seconds
        self._answer_seconds = min(ANSWER_SECONDS, seconds / 4)

    async def measure(self) -> AsyncIterator[Row]:
        """Yields the capacity, then rows of half and of twice that load."""
        capacity = await self._find_capacity()
        yield Row("capacity: streams at once", capacity)
        for name, streams in (("half load", capacity / 2), ("double load", capacity * 2)):
            phase = await self._run_phase(name, streams)
            for row in _rows(phase):
                yield row
            await self._wait_until_idle()

    async def soak(self) -> AsyncIterator[Row]:
        """Yields rows of half the load, with turns that call a tool: whether anything grows."""
        phase = await self._run_phase("soak", await self._find_capacity() / 2, tool_turns_a_second=0.5)
        for row in (*_rows(phase), *phase.growth()):
            yield row

    async def _find_capacity(self) -> int:
        """Adds streams until one is rejected or tokens come late for two seconds; returns how many there were."""
        meter, late, capacity = _Meter(), 0, 1
        text = f"say {_LONGEST_SEARCH * TOKENS_A_SECOND * 2} at {TOKENS_A_SECOND}"
        arriving = asyncio.create_task(self._arrive(text, _MORE_A_SECOND, _LONGEST_SEARCH, meter, seed=None))
        until = time.perf_counter() + _LONGEST_SEARCH
        while late < 2 and not (meter.rejections or meter.failures) and time.perf_counter() < until:
            await asyncio.sleep(1)
            late = late + 1 if meter.gap_percentile(99) > _LATE_MS else 0
            meter.gaps.clear()
            capacity = capacity if late else max(capacity, meter.reading)
        arriving.cancel()
        await asyncio.wait({arriving})
        await self._wait_until_idle()
        return capacity

    async def _run_phase(self, name: str, streams: float, *, tool_turns_a_second: float = 0) -> _Phase:
        """Lets answers arrive so that on average `streams` run at once, and samples what the services use as soon as
        as many run.
        """
        meter, text = _Meter(), f"say {round(self._answer_seconds * TOKENS_A_SECOND)} at {TOKENS_A_SECOND}"
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._arrive(text, streams / self._answer_seconds, self._seconds, meter, seed=1))
            if tool_turns_a_second:
                tasks.create_task(self._arrive("add milk", tool_turns_a_second, self._seconds, meter, seed=2))
            samples = tasks.create_task(self._sample(meter))
        return _Phase(name, meter, samples.result())

    async def _arrive(self, text: str, a_second: float, seconds: float, meter: _Meter, *, seed: int | None) -> None:
        """Sends messages at random times, or evenly without a seed, and waits for their answers."""
        chance = random.Random(seed)  # noqa: S311 - not for secrets
        due = began = time.perf_counter()
        async with asyncio.TaskGroup() as readers:
            while True:
                due += chance.expovariate(a_second) if seed is not None else 1 / a_second
                if due > began + seconds:
                    return
                await asyncio.sleep(due - time.perf_counter())
                readers.create_task(self._read(text, meter, due))

    async def _read(self, text: str, meter: _Meter, due: float) -> None:
        """Reads an answer to its end and notes what became of it."""
        newest = first = 0.0
        failure = b""
        try:
            async with (
                _counted(meter),
                self._services.client.stream(add_message(next(self._services.threads), text)) as response,
            ):
                async for chunk in response.content.iter_any():
                    now = time.perf_counter()
                    first = first or now - due
                    if b"text_delta" in chunk:
                        if newest:
                            meter.gaps[round((now - newest) * 1000)] += 1
                        newest = now
                    if b'"type":"error"' in chunk:
                        failure = chunk
        except OSError as error:
            meter.failures.append(str(error))
            return
        if _REJECTED in failure:
            meter.rejections.append(first)
        elif failure or not newest:
            said = _FAILED.search(failure)
            meter.failures.append((said[1] if said else failure[:200]).decode(errors="replace"))
        else:
            meter.firsts.append(first)

    async def _sample(self, meter: _Meter) -> list[_Sample]:
        """Samples once a second from when as many answers run as ever will."""
        began, samples = time.perf_counter(), list[_Sample]()
        await asyncio.sleep(self._answer_seconds * 2)
        while (at := time.perf_counter() - began) < self._seconds:
            samples.append(_Sample(at, cpu_seconds(self._services.backend.pid), meter.reading, await self._used()))
            await asyncio.sleep(min(1.0, self._seconds / 20))
        return samples

    async def _used(self) -> dict[str, float]:
        backend, mcp = self._services.backend.pid, self._services.mcp.pid
        return {
            "memory": memory(backend) / _MIB,
            "descriptors": descriptors(backend),
            "tasks": await self._gauge("todo_backend_tasks"),
            "connections": await asyncio.to_thread(_count_connections, self._services.admin_url),
            "tool server's memory": memory(mcp) / _MIB,
            "tool server's descriptors": descriptors(mcp),
        }

    async def _wait_until_idle(self) -> None:
        async with asyncio.timeout(_END_SECONDS):
            while await self._gauge("todo_turns_running"):
                await asyncio.sleep(0.1)

    async def _gauge(self, name: str) -> float:
        found = re.search(rf"^{name} (\S+)$", await self._services.client.get_text("/metrics"), re.MULTILINE)
        assert found, f"the backend has no metric {name}"
        return float(found[1])


def _rows(phase: _Phase) -> list[Row]:
    name, meter = phase.name, phase.meter
    answers = len(meter.firsts) + len(meter.rejections) + len(meter.failures)
    rows = [
        Row(f"{name}: streams at once", phase.streams),
        Row(f"{name}: a core's use", phase.core_percent, "%"),
        Row(f"{name}: answers", len(meter.firsts)),
        Row(f"{name}: errors", len(meter.failures)),
        Row(f"{name}: rejected", 100 * len(meter.rejections) / max(1, answers), "%"),
        Row(f"{name}: first event p50", percentile(meter.firsts, 50) * 1000, "ms"),
        Row(f"{name}: first event p99", percentile(meter.firsts, 99) * 1000, "ms"),
        Row(f"{name}: token gap p99", meter.gap_percentile(99), "ms", 1000 / TOKENS_A_SECOND, "the model's"),
    ]
    if meter.rejections:
        rows.append(Row(f"{name}: time to a rejection p99", percentile(meter.rejections, 99) * 1000, "ms"))
    return rows


@asynccontextmanager
async def _counted(meter: _Meter) -> AsyncIterator[None]:
    meter.reading += 1
    try:
        yield
    finally:
        meter.reading -= 1


def _count_connections(url: str) -> int:
    with psycopg.connect(url) as connection:
        return connection.execute(_CONNECTIONS).fetchall()[0][0]
