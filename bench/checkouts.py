"""This checkout beside another one, each on a database of its own, by what both of them can do."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from itertools import cycle, repeat

from bench.compared import Figure, Side, cpu_ms, first_ms, in_turns, p50_ms, p99_ms, paired, rate, with_cpu
from bench.drivers import load
from bench.drivers.load import Call
from bench.measure.followed import BEHIND, STREAMS, long_answer, token_us
from bench.measure.sizes import summarise
from bench.rows import Row
from bench.stage import MANY, PEOPLE, Services

Figures = Sequence[tuple[str, str, Figure]]
HERE, OTHER = "this", "the other"
_ONE: Figures = (
    ("turn p50, 1 conversation", "ms", p50_ms),
    ("CPU of a turn, 1 conversation", "ms", cpu_ms),
    ("first event", "ms", first_ms),
)
_MANY: Figures = (
    ("turn p50, 16 conversations", "ms", p50_ms),
    ("turn p99, 16 conversations", "ms", p99_ms),
    ("turns a second, 16 conversations", "/s", rate),
    ("CPU of a turn, 16 conversations", "ms", cpu_ms),
)
_WORDS: Figures = (("answer of 420 tokens", "ms", p50_ms), ("CPU of an answer of 420 tokens", "ms", cpu_ms))
_CALLS: dict[str, tuple[Callable[[Services], Call], int, Figures]] = {
    "turns, 1 conversation": (lambda services: services.chat.turns(services.threads, "add milk"), 1, _ONE),
    "turns, 16 conversations": (lambda services: services.chat.turns(services.threads, "add milk"), 16, _MANY),
    "streamed tokens": (lambda services: services.chat.turns(services.threads, "say 420"), 1, _WORDS),
    "tool calls": (
        lambda services: services.tools.adding(cycle(PEOPLE)),
        16,
        (("tool calls a second at 16", "/s", rate),),
    ),
    "long threads": (
        lambda services: partial(services.chat.open_thread, services.long_thread),
        1,
        (("open a long thread", "ms", p50_ms), ("CPU of opening a long thread", "ms", cpu_ms)),
    ),
    "turns in long threads": (
        lambda services: services.chat.turns(repeat(services.long_thread), "add milk"),
        1,
        (("turn in a long thread", "ms", p50_ms),),
    ),
    "many tasks": (
        lambda services: partial(services.tools.first_page, MANY),
        1,
        (("first page of many tasks", "ms", p50_ms),),
    ),
}
Measurement = Callable[[Services, Services], Awaitable[list[Row]]]


def _measured(of: Callable[[Services], Call], callers: int, figures: Figures) -> Measurement:
    async def measure(here: Services, other: Services) -> list[Row]:
        sides: dict[str, Side] = {
            name: with_cpu(
                partial(load.run, of(services), callers=callers, seconds=services.scale.seconds),
                (services.backend.pid, services.mcp.pid),
            )
            for name, services in ((OTHER, other), (HERE, here))
        }
        done = await in_turns(here.scale.rounds, sides)
        return [done.row(f"{name}, to {OTHER}", unit, figure, HERE, OTHER) for name, unit, figure in figures]

    return measure


async def measurements(here: Services, other: Services) -> dict[str, Measurement]:
    """Those of the run API where both have it."""
    await asyncio.gather(summarise(here), summarise(other))
    found = {name: _measured(*call) for name, call in _CALLS.items()}
    if await here.chat.has_run_api() and await other.chat.has_run_api():
        ended = {id(services): await long_answer(services) for services in (here, other)}
        found["resumed readers"] = _measured(
            lambda services: partial(services.chat.read_on, *ended[id(services)]),
            1,
            ((f"a resumed reader, {BEHIND} events behind", "ms", p50_ms),),
        )
        found["followed tokens"] = _followed
    return found


async def _followed(here: Services, other: Services) -> list[Row]:
    """What a token costs in a run that is followed, of many."""
    costs: dict[str, list[float]] = {OTHER: [], HERE: []}
    for _ in range(here.scale.long_rounds):
        for name, services in ((OTHER, other), (HERE, here)):
            costs[name].append(await token_us(services, STREAMS, followed=True))
    return [paired(f"a followed token, {STREAMS} streams, to {OTHER}", "µs", costs[HERE], costs[OTHER], OTHER)]
