"""Sides that are measured in turns, round after round, and the rows that come of it."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

from bench.drivers.load import Load
from bench.processes import cpu_seconds
from bench.rows import Row

Side = Callable[[], Awaitable[Load]]
Figure = Callable[[Load], float]


def rate(load: Load) -> float:
    return load.rate


def p50_ms(load: Load) -> float:
    return load.percentile(50) * 1000


def p99_ms(load: Load) -> float:
    return load.percentile(99) * 1000


def first_ms(load: Load) -> float:
    return load.percentile(50, first=True) * 1000


def cpu_ms(load: Load) -> float:
    return load.cpu / len(load.timings) * 1000


def with_cpu(side: Side, pids: Sequence[int]) -> Side:
    """The same side, and what these processes computed for it: a busy machine disturbs that the least."""

    async def costed() -> Load:
        before = sum(map(cpu_seconds, pids))
        load = await side()
        return replace(load, cpu=sum(map(cpu_seconds, pids)) - before)

    return costed


@dataclass(frozen=True)
class Compared:
    loads: Mapping[str, list[Load]]

    def figures(self, side: str, figure: Figure) -> list[float]:
        """Of each round."""
        return [figure(load) for load in self.loads[side]]

    def row(self, name: str, unit: str, figure: Figure, side: str, baseline: str) -> Row:
        return paired(name, unit, self.figures(side, figure), self.figures(baseline, figure), baseline)


def paired(name: str, unit: str, values: Sequence[float], bases: Sequence[float], against: str) -> Row:
    """The ratio is the median of the rounds' own: what disturbs a round disturbs both of its sides."""
    ratio = median(value / base for value, base in zip(values, bases, strict=True))
    return Row(name, median(values), unit, median(bases), against, ratio)


async def in_turns(rounds: int, sides: Mapping[str, Side]) -> Compared:
    loads: dict[str, list[Load]] = {name: [] for name in sides}
    for _ in range(rounds):
        for name, side in sides.items():
            loads[name].append(await side())
    return Compared(loads)
