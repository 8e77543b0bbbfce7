"""Measures how many answers a backend process can stream at once, and what happens at half and at twice that load.

Messages arrive as a Poisson process with a fixed seed, independent of earlier answers. Latency counts from the time at
which a message was due. The model streams 50 tokens a second.
"""

import asyncio
import random
import re
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from statistics import mean, median

import psycopg

from bench.client import add_message
from bench.processes import count_descriptors, read_cpu_seconds, read_private_memory
from bench.report import ReportRow, compute_percentile
from bench.services import BenchServices

TOKENS_A_SECOND, ANSWER_SECONDS = 50, 30
_ADDED_A_SECOND = 4  # during the search for the capacity
_MAX_SEARCH_SECONDS = 120
_MAX_GAP_MS = 100  # a longer gap between tokens means overload
_END_SECONDS = 30  # the time for answers to end after their readers have left
_MIB = 1024 * 1024
_CONNECTIONS = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'todo'"
_REJECTED = b"The assistant is busy"


@dataclass(slots=True)
class _Meter:
    """The observations of a phase: times in seconds since a message was due, gaps in milliseconds."""

    reading: int = 0
    firsts: list[float] = field(default_factory=list[float])
    rejections: list[float] = field(default_factory=list[float])
    failures: int = 0
    gaps: list[float] = field(default_factory=list[float])


@dataclass(frozen=True, slots=True)
class _Sample:
    """The resources in use at a time, in seconds since the phase began."""

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

    def compare_quarters(self) -> list[ReportRow]:
        quarter = max(1, len(self.samples) // 4)
        rows: list[ReportRow] = []
        for name in self.samples[0].used:
            values = [sample.used[name] for sample in self.samples]
            before, after = median(values[:quarter]), median(values[-quarter:])
            unit = "MiB" if "memory" in name else ""
            rows.append(
                ReportRow(f"{self.name}: {name} at the end", after, unit, before, "before", after / (before or 1))
            )
        return rows


class Load:
    """`seconds` is the length of each phase."""

    def __init__(self, services: BenchServices, seconds: float) -> None:
        self._services, self._seconds = services, seconds
        self._answer_seconds = min(ANSWER_SECONDS, seconds / 4)

    async def measure(self) -> AsyncIterator[ReportRow | str]:
        yield "the capacity"
        capacity = await self._find_capacity()
        yield ReportRow("capacity: streams at once", capacity)
        for name, streams in (("half load", capacity / 2), ("double load", capacity * 2)):
            yield name
            phase = await self._run_phase(name, streams)
            for row in _render_rows(phase):
                yield row
            await self._wait_until_idle()

    async def soak(self) -> AsyncIterator[ReportRow | str]:
        """Yields rows of half the load, with turns that call a tool, to see whether anything grows."""
        yield "the capacity"
        capacity = await self._find_capacity()
        yield "half of it"
        phase = await self._run_phase("soak", capacity / 2, tool_turns_a_second=0.5)
        for row in (*_render_rows(phase), *phase.compare_quarters()):
            yield row

    async def _find_capacity(self) -> int:
        """Adds streams until one is rejected or tokens are late for two seconds; returns their number."""
        meter, late, capacity = _Meter(), 0, 1
        text = f"say {_MAX_SEARCH_SECONDS * TOKENS_A_SECOND * 2} at {TOKENS_A_SECOND}"
        arriving = asyncio.create_task(
            self._send_messages(text, _ADDED_A_SECOND, _MAX_SEARCH_SECONDS, meter, seed=None)
        )
        until = time.perf_counter() + _MAX_SEARCH_SECONDS
        while late < 2 and not (meter.rejections or meter.failures) and time.perf_counter() < until:
            await asyncio.sleep(1)
            late = late + 1 if compute_percentile(meter.gaps, 99) > _MAX_GAP_MS else 0
            meter.gaps.clear()
            capacity = capacity if late else max(capacity, meter.reading)
        arriving.cancel()
        await asyncio.wait({arriving})
        await self._wait_until_idle()
        return capacity

    async def _run_phase(self, name: str, streams: float, *, tool_turns_a_second: float = 0) -> _Phase:
        meter, text = _Meter(), f"say {round(self._answer_seconds * TOKENS_A_SECOND)} at {TOKENS_A_SECOND}"
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._send_messages(text, streams / self._answer_seconds, self._seconds, meter, seed=1))
            if tool_turns_a_second:
                tasks.create_task(self._send_messages("add milk", tool_turns_a_second, self._seconds, meter, seed=2))
            samples = tasks.create_task(self._sample(meter))
        return _Phase(name, meter, samples.result())

    async def _send_messages(
        self, text: str, a_second: float, seconds: float, meter: _Meter, *, seed: int | None
    ) -> None:
        """Sends messages at random times, or evenly without a seed, and waits for their answers."""
        chance = random.Random(seed)  # noqa: S311 - not for secrets
        due = began = time.perf_counter()
        async with asyncio.TaskGroup() as readers:
            while True:
                due += chance.expovariate(a_second) if seed is not None else 1 / a_second
                if due > began + seconds:
                    return
                await asyncio.sleep(due - time.perf_counter())
                readers.create_task(self._read_answer(text, meter, due))

    async def _read_answer(self, text: str, meter: _Meter, due: float) -> None:
        newest = first = 0.0
        failure = b""
        meter.reading += 1
        try:
            async with self._services.client.stream(add_message(next(self._services.threads), text)) as response:
                async for chunk in response.content.iter_any():
                    now = time.perf_counter()
                    first = first or now - due
                    if b"text_delta" in chunk:
                        if newest:
                            meter.gaps.append((now - newest) * 1000)
                        newest = now
                    if b'"type":"error"' in chunk:
                        failure = chunk
        except OSError:
            meter.failures += 1
            return
        finally:
            meter.reading -= 1
        if _REJECTED in failure:
            meter.rejections.append(first)
        elif failure or not newest:
            meter.failures += 1
        else:
            meter.firsts.append(first)

    async def _sample(self, meter: _Meter) -> list[_Sample]:
        """Samples once a second, after the number of answers has settled."""
        began, samples = time.perf_counter(), list[_Sample]()
        await asyncio.sleep(self._answer_seconds * 2)
        while (at := time.perf_counter() - began) < self._seconds:
            samples.append(
                _Sample(at, read_cpu_seconds(self._services.backend.pid), meter.reading, await self._read_usage())
            )
            await asyncio.sleep(min(1.0, self._seconds / 20))
        return samples

    async def _read_usage(self) -> dict[str, float]:
        backend, mcp = self._services.backend.pid, self._services.mcp.pid
        return {
            "memory": read_private_memory(backend) / _MIB,
            "descriptors": count_descriptors(backend),
            "tasks": await self._read_gauge("todo_backend_asyncio_tasks"),
            "connections": await asyncio.to_thread(_count_connections, self._services.admin_url),
            "tool server's memory": read_private_memory(mcp) / _MIB,
            "tool server's descriptors": count_descriptors(mcp),
        }

    async def _wait_until_idle(self) -> None:
        async with asyncio.timeout(_END_SECONDS):
            while await self._read_gauge("todo_runs_running"):
                await asyncio.sleep(0.1)

    async def _read_gauge(self, name: str) -> float:
        match = re.search(rf"^{name} (\S+)$", await self._services.client.get_text("/metrics"), re.MULTILINE)
        assert match, f"the backend has no metric {name}"
        return float(match[1])


def _render_rows(phase: _Phase) -> list[ReportRow]:
    name, meter = phase.name, phase.meter
    answers = len(meter.firsts) + len(meter.rejections) + meter.failures
    rows = [
        ReportRow(f"{name}: streams at once", phase.streams),
        ReportRow(f"{name}: a core's use", phase.core_percent, "%"),
        ReportRow(f"{name}: answers", len(meter.firsts)),
        ReportRow(f"{name}: errors", meter.failures),
        ReportRow(f"{name}: rejected", 100 * len(meter.rejections) / max(1, answers), "%"),
        ReportRow(f"{name}: first event p50", compute_percentile(meter.firsts, 50) * 1000, "ms"),
        ReportRow(f"{name}: first event p99", compute_percentile(meter.firsts, 99) * 1000, "ms"),
        ReportRow(
            f"{name}: token gap p99", compute_percentile(meter.gaps, 99), "ms", 1000 / TOKENS_A_SECOND, "the model's"
        ),
    ]
    if meter.rejections:
        rows.append(
            ReportRow(f"{name}: time to a rejection p99", compute_percentile(meter.rejections, 99) * 1000, "ms")
        )
    return rows


def _count_connections(url: str) -> int:
    with psycopg.connect(url) as connection:
        return connection.execute(_CONNECTIONS).fetchall()[0][0]
