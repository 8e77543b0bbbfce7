"""What the services cost beside the Agents SDK alone, and what must not depend on how much is stored."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from itertools import cycle, repeat
from statistics import median

from bench import seed
from bench.client import Timing, add_message
from bench.processes import cpu_seconds, memory
from bench.report import Row, compare, percentile
from bench.sdk import SdkAgent
from bench.services import Services

_SDK, _PRODUCT = "Agents SDK", "product"
_SHORT, _LONG = 20, 420  # tokens of an answer
_CALLERS = 16
_STREAMS = 50  # answers that are held open to measure their memory
_SETTLE_SECONDS = 1.0
_FEW, _MANY = "few-tasks", "many-tasks"  # users

Call = Callable[[], Awaitable[Timing]]


@dataclass(frozen=True, slots=True)
class Scale:
    """How long is measured and how much is stored: rounds of each comparison, seconds of a side in a round, items of
    the long conversation, tasks of the user with many.
    """

    rounds: int = 12
    seconds: float = 0.3
    items: int = 10_000
    tasks: int = 100_000


@dataclass(frozen=True, slots=True)
class _Load:
    """The calls of one side in one round; `cpu` is what the measured processes computed, in seconds."""

    timings: Sequence[Timing]
    seconds: float
    cpu: float

    @property
    def p50_ms(self) -> float:
        return percentile([timing.total for timing in self.timings], 50) * 1000

    @property
    def first_ms(self) -> float:
        return percentile([timing.first for timing in self.timings], 50) * 1000

    @property
    def cpu_ms(self) -> float:
        return self.cpu / len(self.timings) * 1000

    @property
    def per_second(self) -> float:
        return len(self.timings) / self.seconds


_Figure = Callable[[_Load], float]


class Measurement:
    """Measures the rows of the report one after the other."""

    def __init__(self, services: Services, scale: Scale) -> None:
        self._services, self._client, self._scale = services, services.client, scale
        self._sdk = SdkAgent(services.model_url)

    async def measure(self) -> AsyncIterator[Row]:
        yield await self._memory()
        for measure in (self._turns, self._turns_at_once, self._tokens, self._tool_calls, self._sizes):
            for row in await measure():
                yield row

    async def _turns(self) -> list[Row]:
        loads = await self._alternate(self._sides("add milk"), callers=1)
        return [
            _compare("turn p50", "ms", loads, lambda load: load.p50_ms),
            _compare("CPU of a turn", "ms", loads, lambda load: load.cpu_ms),
            # The SDK's first event comes before the model's: there is nothing to compare with.
            Row("first event", median(load.first_ms for load in loads[_PRODUCT]), "ms"),
        ]

    async def _turns_at_once(self) -> list[Row]:
        loads = await self._alternate(self._sides("add milk"), callers=_CALLERS)
        return [
            _compare(f"turn p50, {_CALLERS} conversations", "ms", loads, lambda load: load.p50_ms),
            _compare(f"CPU of a turn, {_CALLERS} conversations", "ms", loads, lambda load: load.cpu_ms),
            _compare(f"turns a second, {_CALLERS} conversations", "/s", loads, lambda load: load.per_second),
        ]

    async def _tokens(self) -> list[Row]:
        """Measures one more token of an answer: long answers minus short ones."""
        short, long = self._sides(f"say {_SHORT}"), self._sides(f"say {_LONG}")
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

    async def _tool_calls(self) -> list[Row]:
        tokens = cycle([self._services.token(f"user-{number}") for number in range(_CALLERS)])
        calls: dict[str, Call] = {
            _PRODUCT: lambda: self._client.call_tool(next(tokens), "add_task", {"title": "Buy milk"})
        }
        loads = (await self._alternate(calls, callers=_CALLERS))[_PRODUCT]
        figures = [load.per_second for load in loads]
        return [Row(f"tool calls a second, {_CALLERS} callers", percentile(figures, 50), "/s")]

    async def _sizes(self) -> list[Row]:
        """Compares a long conversation with a short one, and a long task list with a short one."""
        admin_url, items, tasks = self._services.admin_url, self._scale.items, self._scale.tasks
        _, turn = await self._client.create_thread("add milk")
        short = cycle(seed.copy_conversation(admin_url, turn, prefix="thr_short_", threads=100, turns=10))
        [long] = seed.copy_conversation(admin_url, turn, prefix="thr_long_", threads=1, turns=items // 2)
        for user, count in ((_FEW, 20), (_MANY, tasks)):
            seed.add_tasks(admin_url, user, count)
        seed.settle(admin_url)
        opened = await self._compare_sizes(
            "open a long conversation", "20 items", self._client.open_thread, short, repeat(long)
        )
        summaries = -1
        while summaries < (summaries := seed.count_summaries(admin_url, long)):  # after a turn a part is summarised
            await self._client.send_message(long, "add milk")
            await asyncio.sleep(_SETTLE_SECONDS)
        turn_row = await self._compare_sizes(
            "turn in a long conversation",
            "20 items",
            lambda thread: self._client.send_message(thread, "add milk"),
            short,
            repeat(long),
        )
        few, many = (repeat(self._services.token(user)) for user in (_FEW, _MANY))
        first_page = await self._compare_sizes(
            "first page of many tasks",
            "20 tasks",
            lambda token: self._client.call_tool(token, "list_tasks", {"limit": 20}),
            few,
            many,
        )
        return [opened, turn_row, first_page]

    async def _compare_sizes(
        self,
        name: str,
        small_name: str,
        call: Callable[[str], Awaitable[Timing]],
        small: "repeat[str] | cycle[str]",
        large: "repeat[str] | cycle[str]",
    ) -> Row:
        sides = {"large": lambda: call(next(large)), "small": lambda: call(next(small))}
        loads = await self._alternate(sides, callers=1)
        figures, baselines = ([load.p50_ms for load in loads[side]] for side in ("large", "small"))
        return compare(name, "ms", figures, baselines, small_name)

    async def _memory(self) -> Row:
        """Measures the memory of answers that are held open; first, while the processes have freed nothing yet."""
        pid = self._services.backend.pid
        await self._client.create_thread("add milk")
        before = memory(pid)
        async with AsyncExitStack() as stack:
            for _ in range(_STREAMS):
                body = add_message(next(self._services.threads), "say 1000000 at 1")
                response = await stack.enter_async_context(self._client.stream(body))
                await response.content.readany()
            await asyncio.sleep(_SETTLE_SECONDS)
            held = memory(pid) - before
        return Row("memory of a streaming answer", held / _STREAMS / 1024, "KiB")

    def _sides(self, text: str) -> dict[str, Call]:
        threads = self._services.threads
        return {
            _PRODUCT: lambda: self._client.send_message(next(threads), text),
            _SDK: partial(self._sdk.send_message, text),
        }

    async def _alternate(self, sides: Mapping[str, Call], *, callers: int) -> dict[str, list[_Load]]:
        """Measures sides in turn, round after round."""
        loads: dict[str, list[_Load]] = {name: [] for name in sides}
        for _ in range(self._scale.rounds):
            for name, call in sides.items():
                loads[name].append(await self._run(call, callers, is_sdk=name.startswith(_SDK)))
        return loads

    async def _run(self, call: Call, callers: int, *, is_sdk: bool) -> _Load:
        """Lets callers call, each again as soon as it has the response to its last call."""
        timings: list[Timing] = []
        cpu_before, began = self._cpu_seconds(is_sdk=is_sdk), time.perf_counter()

        async def repeat_calls() -> None:
            while time.perf_counter() - began < self._scale.seconds:
                timings.append(await call())

        await asyncio.gather(*[repeat_calls() for _ in range(callers)])
        elapsed = time.perf_counter() - began
        return _Load(timings, elapsed, self._cpu_seconds(is_sdk=is_sdk) - cpu_before)

    def _cpu_seconds(self, *, is_sdk: bool) -> float:
        """What this process has computed, in which the SDK runs, or backend and tool server."""
        services = self._services
        return time.process_time() if is_sdk else cpu_seconds(services.backend.pid) + cpu_seconds(services.mcp.pid)


def _compare(name: str, unit: str, loads: Mapping[str, Sequence[_Load]], figure: _Figure) -> Row:
    return compare(name, unit, [figure(load) for load in loads[_PRODUCT]], [figure(load) for load in loads[_SDK]], _SDK)
