"""More and more people at once: what a process carries, how it is at half of that, and what becomes of twice as many.

Answers are streamed at the pace of a real model, and come when they come: arrivals do not wait for answers.
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import quantiles

from bench import processes
from bench.drivers.arrivals import Call, Meter, arrive, read
from bench.drivers.product import message
from bench.measure.capacity.watched import Looks, gauge, watched
from bench.rows import Row
from bench.stage import Place, Product

TOKENS_A_SECOND, ANSWER_SECONDS = 50, 30
MANY = 0.75
"""The streams at once of the second run at half load, of as many as there may be."""
_IDLE_TURNS = 200
_IDLE_A_SECOND = 2
_MORE_A_SECOND = 4  # while the capacity is looked for
_LONGEST_SEARCH = 120  # seconds
_LATE_MS = 100  # a token's gap that tells that no more are carried
_MIB = 1024 * 1024


@dataclass(frozen=True)
class Idle:
    """Of turns that come seldom, in seconds."""

    first_p50: float
    first_p99: float
    cpu: float


@dataclass(frozen=True)
class Answers:
    """How long each of them is, and how fast it comes."""

    seconds: float
    a_second: float = TOKENS_A_SECOND

    @property
    def text(self) -> str:
        return f"tell {round(self.seconds * self.a_second)} at {self.a_second:.2f}"


@dataclass(frozen=True)
class Phase:
    """What was read of the answers that arrived, and what the backend took meanwhile."""

    name: str
    answers: Answers
    arrivals_a_second: float
    meter: Meter
    looks: Looks

    @property
    def settled(self) -> float:
        """Seconds after which as many answers run as ever will, and what is needed for them was taken."""
        return 2 * self.answers.seconds

    @property
    def streams(self) -> float:
        return self.looks.mean(lambda look: look.reading, after=self.settled)

    def token_cpu(self, idle: Idle) -> float:
        """Seconds, with what turns cost by beginning and ending left out."""
        tokens_a_second = self.streams * self.answers.a_second
        return (self.looks.busy(after=self.settled) - self.arrivals_a_second * idle.cpu) / tokens_a_second


class Load:
    """`seconds` is how long each phase takes, and at `most` so many answers run at once."""

    def __init__(
        self, place: Place, product: Product, seconds: float, tell: Callable[[str], None], *, most: int
    ) -> None:
        self._place, self._product, self._seconds, self._tell = place, product, seconds, tell
        self._most = most
        self.answer_seconds = min(ANSWER_SECONDS, seconds / 4)

    async def rows(self) -> tuple[list[Row], list[str]]:
        """The rows, and notes of what failed."""
        idle = await self.idle("idle")
        capacity = await self.capacity()
        answers = Answers(self.answer_seconds)
        half = await self.phase("half load", capacity / 2, answers)
        many = MANY * self._most * self.answer_seconds / ANSWER_SECONDS  # who begin are as many in a short run
        slow = Answers(self.answer_seconds, pace(many, half, idle))
        half_of_many = await self.phase("half load, many streams", many, slow)
        double = await self.phase("double load", capacity * 2, answers)
        await self._all_ended()
        after = await self.idle("afterwards")
        rows = [
            Row("capacity: streams at once", capacity, ""),
            *_at_half(half, idle),
            *_at_half(half_of_many, idle),
            *_at_double(double),
            _beside("afterwards: first event p50", after.first_p50, idle.first_p50, "before"),
            Row("afterwards: answers that still run", await gauge(self._product, "todo_turns_running"), ""),
        ]
        return rows, [
            f"{phase.name}: {note}" for phase in (half, half_of_many, double) for note in failures(phase.meter)
        ]

    async def idle(self, name: str) -> Idle:
        """Of five tokens each, measured as under load: what they need is in no cache of the processor."""
        self._tell(name)
        pid, meter = self._product.backend.pid, Meter()
        cpu, seconds = processes.cpu_seconds(pid), min(self._seconds, _IDLE_TURNS / _IDLE_A_SECOND)
        await arrive(self._call("say 5", meter), a_second=_IDLE_A_SECOND, seconds=seconds, even=True)
        if left := failures(meter):
            raise RuntimeError(f"{name}: {left[0]}")
        firsts = [one.first for one in meter.of("answered")]
        each = (processes.cpu_seconds(pid) - cpu) / len(firsts)
        return Idle(percentile(firsts, 50), percentile(firsts, 99), each)

    async def capacity(self) -> int:
        """How many streams there are when one more is refused, or tokens come late for two seconds."""
        self._tell("how many it carries")
        meter, late, carried = Meter(), 0, 1
        call = self._call(Answers(_LONGEST_SEARCH * 2).text, meter)
        arriving = asyncio.create_task(
            arrive(call, a_second=_MORE_A_SECOND, seconds=_LONGEST_SEARCH, even=True), name="arriving"
        )
        until = time.perf_counter() + _LONGEST_SEARCH
        while late < 2 and not meter.told and time.perf_counter() < until:
            await asyncio.sleep(1)
            late = late + 1 if meter.percentile_ms(99) > _LATE_MS else 0
            meter.forget_gaps()
            carried = carried if late else max(carried, meter.reading)
        arriving.cancel()
        await asyncio.wait({arriving})
        if not arriving.cancelled():
            arriving.result()
        await self._all_ended()
        return carried

    async def phase(self, name: str, streams: float, answers: Answers, *, even: bool = False) -> Phase:
        """As many answers begin as let so many run at once."""
        self._tell(name)
        meter, a_second = Meter(), streams / answers.seconds
        async with watched(
            self._place, self._product, lambda: meter.reading, seconds=self._seconds, all_of_it=even
        ) as looks:
            await arrive(self._call(answers.text, meter), a_second=a_second, seconds=self._seconds, even=even)
        return Phase(name, answers, a_second, meter, looks)

    async def add_tasks(self, a_second: float) -> Meter:
        """Turns that call a tool, for as long as a phase."""
        meter = Meter()
        await arrive(self._call("add milk", meter), a_second=a_second, seconds=self._seconds, even=True)
        return meter

    def _call(self, text: str, meter: Meter) -> Call:
        async def call(due: float) -> None:
            await read(self._product.backend.port, message(next(self._product.threads), text), meter, due)

        return call

    async def _all_ended(self) -> None:
        """Readers who left stop their answers; what that takes is over."""
        async with asyncio.timeout(ANSWER_SECONDS):
            while await gauge(self._product, "todo_turns_running"):
                await asyncio.sleep(0.1)


def pace(streams: float, half: Phase, idle: Idle) -> float:
    """Tokens a second of each of so many streams that let the backend compute as much as at half load.

    The usual pace where nothing ran then, as in a run of seconds on a machine that others keep busy.
    """
    if half.streams == 0:
        return TOKENS_A_SECOND
    begun = streams / half.answers.seconds * idle.cpu
    for_tokens = half.looks.busy(after=half.settled) - begun
    return min(TOKENS_A_SECOND, max(1.0, for_tokens / (streams * half.token_cpu(idle))))


def _at_half(phase: Phase, idle: Idle) -> list[Row]:
    name, firsts = phase.name, [one.first for one in phase.meter.of("answered")]
    return [
        *_common(phase),
        Row(f"{name}: refused", len(phase.meter.of("refused")), ""),
        _beside(f"{name}: first event p50", percentile(firsts, 50), idle.first_p50, "idle"),
        _beside(f"{name}: first event p99", percentile(firsts, 99), idle.first_p99, "idle"),
    ]


def _at_double(phase: Phase) -> list[Row]:
    name, answered, refused = phase.name, phase.meter.of("answered"), phase.meter.of("refused")
    totals, refusals = [one.total for one in answered], [one.total for one in refused]
    share = 100 * len(refused) / len(phase.meter.told)
    return [
        *_common(phase),
        _beside(f"{name}: an answer's time p99", percentile(totals, 99), phase.answers.seconds, "as it is told", "s"),
        Row(f"{name}: first event p99", percentile([one.first for one in answered], 99) * 1000, "ms"),
        Row(f"{name}: refused", share, "%"),
        Row(f"{name}: time to a refusal p99", percentile(refusals, 99) * 1000, "ms"),
        Row(f"{name}: longest time to a refusal", max(refusals, default=0.0) * 1000, "ms"),
    ]


def _common(phase: Phase) -> list[Row]:
    name, looks = phase.name, phase.looks
    before, after = looks.ends(lambda look: look.memory / _MIB, after=phase.settled)
    gap, pace = phase.meter.percentile_ms(99), 1000 / phase.answers.a_second
    return [
        Row(f"{name}: streams at once", phase.streams, ""),
        Row(f"{name}: tokens a second of each", phase.answers.a_second, "/s"),
        Row(f"{name}: a core's use", 100 * looks.busy(after=phase.settled), "%"),
        Row(f"{name}: errors", len(phase.meter.of("failed")), ""),
        Row(f"{name}: arrivals late p99", percentile(phase.meter.late, 99) * 1000, "ms"),
        Row(f"{name}: token gap p99", gap, "ms", pace, "as it is told"),
        Row(f"{name}: memory at the end", after, "MiB", before, "settled", after / before),
    ]


def failures(meter: Meter) -> list[str]:
    """What the first of those said that failed."""
    return [one.text for one in meter.of("failed")[:1]]


def _beside(name: str, value: float, base: float, against: str, unit: str = "ms") -> Row:
    """Both in seconds."""
    scale = 1000 if unit == "ms" else 1
    return Row(name, value * scale, unit, base * scale, against, value / base)


def percentile(values: list[float], percent: int) -> float:
    """0 where there are none."""
    if len(values) < 2:
        return sum(values)
    return quantiles(values, n=100, method="inclusive")[percent - 1]
