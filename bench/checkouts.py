"""This checkout beside another one, each on a database of its own, by what both of them can do."""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from itertools import cycle, repeat

from bench.compared import Figure, Side, cpu_ms, first_ms, in_turns, p50_ms, p99_ms, paired, rate, with_cpu
from bench.drivers import load
from bench.drivers.load import Call
from bench.measure.followed import BEHIND, STREAMS, logged, token_us
from bench.measure.sizes import summarise
from bench.rows import Row
from bench.stage import MANY, PEOPLE, Stage

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
_CALLS: dict[str, tuple[Callable[[Stage], Call], int, Figures]] = {
    "turns, 1 conversation": (lambda stage: stage.chat.turns(stage.threads, "add milk"), 1, _ONE),
    "turns, 16 conversations": (lambda stage: stage.chat.turns(stage.threads, "add milk"), 16, _MANY),
    "streamed tokens": (lambda stage: stage.chat.turns(stage.threads, "say 420"), 1, _WORDS),
    "tool calls": (
        lambda stage: stage.tools.adding(cycle(PEOPLE)),
        16,
        (("tool calls a second at 16", "/s", rate),),
    ),
    "long threads": (
        lambda stage: partial(stage.chat.open_thread, stage.long_thread),
        1,
        (("open a long thread", "ms", p50_ms), ("CPU of opening a long thread", "ms", cpu_ms)),
    ),
    "turns in long threads": (
        lambda stage: stage.chat.turns(repeat(stage.long_thread), "add milk"),
        1,
        (("turn in a long thread", "ms", p50_ms),),
    ),
    "many tasks": (
        lambda stage: partial(stage.tools.first_page, MANY),
        1,
        (("first page of many tasks", "ms", p50_ms),),
    ),
}
Measurement = Callable[[Stage, Stage], Awaitable[list[Row]]]


def _measured(of: Callable[[Stage], Call], callers: int, figures: Figures) -> Measurement:
    async def measure(here: Stage, other: Stage) -> list[Row]:
        sides: dict[str, Side] = {
            name: with_cpu(
                partial(load.run, of(stage), callers=callers, seconds=stage.scale.seconds),
                (stage.backend.pid, stage.mcp.pid),
            )
            for name, stage in ((OTHER, other), (HERE, here))
        }
        done = await in_turns(here.scale.rounds, sides)
        return [done.row(f"{name}, to {OTHER}", unit, figure, HERE, OTHER) for name, unit, figure in figures]

    return measure


async def measurements(here: Stage, other: Stage) -> dict[str, Measurement]:
    """Those of the run API where both have it."""
    for stage in (here, other):
        await summarise(stage)
    found = {name: _measured(*call) for name, call in _CALLS.items()}
    if await here.chat.has_run_api() and await other.chat.has_run_api():
        ended = {id(stage): await logged(stage) for stage in (here, other)}
        found["resumed readers"] = _measured(
            lambda stage: partial(stage.chat.read_on, ended[id(stage)], after=BEHIND),
            1,
            ((f"a resumed reader, {BEHIND} events behind", "ms", p50_ms),),
        )
        found["logged tokens"] = _followed
    return found


async def _followed(here: Stage, other: Stage) -> list[Row]:
    """What a token costs in a run that is followed, of many."""
    costs: dict[str, list[float]] = {OTHER: [], HERE: []}
    for _ in range(here.scale.long_rounds):
        for name, stage in ((OTHER, other), (HERE, here)):
            costs[name].append(await token_us(stage, STREAMS, followed=True))
    return [paired(f"a logged token, {STREAMS} streams, to {OTHER}", "µs", costs[HERE], costs[OTHER], OTHER)]
