"""Compares the services with the Agents SDK alone, and large conversations and task lists with small ones."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from itertools import cycle
from statistics import median

from bench import seed
from bench.client import Timing, add_message
from bench.processes import read_cpu_seconds, read_private_memory
from bench.report import ReportRow, compare, compute_percentile
from bench.sdk import SdkAgent
from bench.services import BenchServices

_SDK, _PRODUCT = "Agents SDK", "product"
_SHORT, _LONG = 20, 420  # tokens of an answer
_CALLERS = 16
_STREAMS = 50  # answers that are held open to measure their memory
_SETTLE_SECONDS = 1.0
_FEW, _MANY = "few-tasks", "many-tasks"  # users

Call = Callable[[], Awaitable[Timing]]


@dataclass(frozen=True, slots=True)
class Scale:
    """Rounds of a comparison, seconds of a side in a round, items of the long conversation, tasks of the long list."""

    rounds: int = 12
    seconds: float = 0.3
    items: int = 10_000
    tasks: int = 100_000


@dataclass(frozen=True, slots=True)
class _Load:
    """The calls of one side in one round; `cpu` is the processor time of the measured processes in seconds."""

    timings: Sequence[Timing]
    seconds: float
    cpu: float

    @property
    def p50_ms(self) -> float:
        return compute_percentile([timing.total for timing in self.timings], 50) * 1000

    @property
    def first_ms(self) -> float:
        return compute_percentile([timing.first for timing in self.timings], 50) * 1000

    @property
    def cpu_ms(self) -> float:
        return self.cpu / len(self.timings) * 1000

    @property
    def per_second(self) -> float:
        return len(self.timings) / self.seconds


_Figure = Callable[[_Load], float]


class Measurement:
    def __init__(self, services: BenchServices, scale: Scale) -> None:
        self._services, self._client, self._scale = services, services.client, scale
        self._sdk = SdkAgent(services.model_url)

    async def measure(self) -> AsyncIterator[ReportRow | str]:
        """Yields what is measured next, and the rows of it."""
        for name, measure in (
            ("the memory of an answer", self._measure_memory),
            ("an answer", self._measure_turns),
            (f"answers in {_CALLERS} conversations", self._measure_turns_at_once),
            ("a token", self._measure_tokens),
            ("tool calls", self._measure_tool_calls),
            ("long conversations and lists", self._measure_sizes),
        ):
            yield name
            for row in await measure():
                yield row

    async def _measure_turns(self) -> list[ReportRow]:
        loads = await self._alternate(self._create_sides("add milk"), callers=1)
        return [
            _compare("turn p50", "ms", loads, lambda load: load.p50_ms),
            _compare("CPU of a turn", "ms", loads, lambda load: load.cpu_ms),
            # Not compared, because the SDK emits its first event before the model responds.
            ReportRow("first event", median(load.first_ms for load in loads[_PRODUCT]), "ms"),
        ]

    async def _measure_turns_at_once(self) -> list[ReportRow]:
        loads = await self._alternate(self._create_sides("add milk"), callers=_CALLERS)
        return [
            _compare(f"turn p50, {_CALLERS} conversations", "ms", loads, lambda load: load.p50_ms),
            _compare(f"CPU of a turn, {_CALLERS} conversations", "ms", loads, lambda load: load.cpu_ms),
            _compare(f"turns a second, {_CALLERS} conversations", "/s", loads, lambda load: load.per_second),
        ]

    async def _measure_tokens(self) -> list[ReportRow]:
        """Measures one token as the difference between long and short answers."""
        short, long = self._create_sides(f"say {_SHORT}"), self._create_sides(f"say {_LONG}")
        sides = {f"{name} {size}": side[name] for size, side in (("short", short), ("long", long)) for name in side}
        loads = await self._alternate(sides, callers=1)

        def token_us(name: str, figure: _Figure) -> list[float]:
            pairs = zip(loads[f"{name} short"], loads[f"{name} long"], strict=True)
            return [(figure(more) - figure(less)) * 1000 / (_LONG - _SHORT) for less, more in pairs]

        figures: list[tuple[str, _Figure]] = [
            ("a streamed token", lambda load: load.p50_ms),
            ("CPU of a streamed token", lambda load: load.cpu_ms),
        ]
        return [compare(name, "µs", token_us(_PRODUCT, of), token_us(_SDK, of), _SDK) for name, of in figures]

    async def _measure_tool_calls(self) -> list[ReportRow]:
        tokens = cycle([self._services.create_token(f"user-{number}") for number in range(_CALLERS)])
        calls: dict[str, Call] = {
            _PRODUCT: lambda: self._client.call_tool(next(tokens), "add_task", {"title": "Buy milk"})
        }
        loads = (await self._alternate(calls, callers=_CALLERS))[_PRODUCT]
        figures = [load.per_second for load in loads]
        return [ReportRow(f"tool calls a second, {_CALLERS} callers", compute_percentile(figures, 50), "/s")]

    async def _measure_sizes(self) -> list[ReportRow]:
        admin_url, items, tasks = self._services.admin_url, self._scale.items, self._scale.tasks
        _, turn = await self._client.create_thread("add milk")
        shorts = cycle(seed.copy_conversation(admin_url, turn, prefix="thr_short_", threads=100, turns=10))
        [long] = seed.copy_conversation(admin_url, turn, prefix="thr_long_", threads=1, turns=items // 2)
        for user, count in ((_FEW, 20), (_MANY, tasks)):
            seed.add_tasks(admin_url, user, count)
        seed.vacuum(admin_url)
        opened = await self._compare_sizes(
            "open a long conversation",
            "20 items",
            small=lambda: self._client.open_thread(next(shorts)),
            large=lambda: self._client.open_thread(long),
        )
        summaries = -1
        while summaries < (summaries := seed.count_summaries(admin_url, long)):  # each turn summarises a part
            await self._client.send_message(long, "add milk")
            await asyncio.sleep(_SETTLE_SECONDS)
        turn_row = await self._compare_sizes(
            "turn in a long conversation",
            "20 items",
            small=lambda: self._client.send_message(next(shorts), "add milk"),
            large=lambda: self._client.send_message(long, "add milk"),
        )
        few, many = (self._services.create_token(user) for user in (_FEW, _MANY))
        first_page = await self._compare_sizes(
            "first page of many tasks",
            "20 tasks",
            small=lambda: self._client.call_tool(few, "list_tasks", {"limit": 20}),
            large=lambda: self._client.call_tool(many, "list_tasks", {"limit": 20}),
        )
        return [opened, turn_row, first_page]

    async def _compare_sizes(self, name: str, small_name: str, *, small: Call, large: Call) -> ReportRow:
        loads = await self._alternate({"large": large, "small": small}, callers=1)
        figures, baselines = ([load.p50_ms for load in loads[side]] for side in ("large", "small"))
        return compare(name, "ms", figures, baselines, small_name)

    async def _measure_memory(self) -> list[ReportRow]:
        """Measures the memory of open answers; it must run first, before the processes have freed memory to reuse."""
        pid = self._services.backend.pid
        await self._client.create_thread("add milk")
        before = read_private_memory(pid)
        async with AsyncExitStack() as stack:
            for _ in range(_STREAMS):
                body = add_message(next(self._services.threads), "say 1000000 at 1")
                response = await stack.enter_async_context(self._client.stream(body))
                await response.content.readany()
            await asyncio.sleep(_SETTLE_SECONDS)
            used = read_private_memory(pid) - before
        return [ReportRow("memory of a streaming answer", used / _STREAMS / 1024, "KiB")]

    def _create_sides(self, text: str) -> dict[str, Call]:
        threads = self._services.threads
        return {
            _PRODUCT: lambda: self._client.send_message(next(threads), text),
            _SDK: partial(self._sdk.send_message, text),
        }

    async def _alternate(self, sides: Mapping[str, Call], *, callers: int) -> dict[str, list[_Load]]:
        loads: dict[str, list[_Load]] = {name: [] for name in sides}
        for _ in range(self._scale.rounds):
            for name, call in sides.items():
                loads[name].append(await self._run(call, callers, is_sdk=name.startswith(_SDK)))
        return loads

    async def _run(self, call: Call, callers: int, *, is_sdk: bool) -> _Load:
        timings: list[Timing] = []
        cpu_before, began = self._cpu_seconds(is_sdk=is_sdk), time.perf_counter()

        async def repeat_calls() -> None:
            while time.perf_counter() - began < self._scale.seconds:
                timings.append(await call())

        await asyncio.gather(*[repeat_calls() for _ in range(callers)])
        elapsed = time.perf_counter() - began
        return _Load(timings, elapsed, self._cpu_seconds(is_sdk=is_sdk) - cpu_before)

    def _cpu_seconds(self, *, is_sdk: bool) -> float:
        """The processor time of this process, in which the SDK runs, or of backend and tool server."""
        if is_sdk:
            return time.process_time()
        return sum(read_cpu_seconds(server.pid) for server in (self._services.backend, self._services.mcp))


def _compare(name: str, unit: str, loads: Mapping[str, Sequence[_Load]], figure: _Figure) -> ReportRow:
    return compare(name, unit, [figure(load) for load in loads[_PRODUCT]], [figure(load) for load in loads[_SDK]], _SDK)
