"""Half load for long: whether anything grows."""

from collections.abc import Callable

from bench.measure.capacity.under_load import Answers, Load, failures
from bench.measure.capacity.watched import Look
from bench.rows import Row

_MIB = 1024 * 1024
_GROWS: dict[str, tuple[str, Callable[[Look], float]]] = {
    "memory": ("MiB", lambda look: look.memory / _MIB),
    "connections": ("", lambda look: look.connections),
    "tasks": ("", lambda look: look.tasks),
    "descriptors": ("", lambda look: look.descriptors),
}


async def soak(load: Load) -> tuple[list[Row], list[str]]:
    """Answers come evenly, so that as many run in the end as in the beginning."""
    capacity = await load.capacity()
    phase = await load.phase("soak", capacity / 2, Answers(load.answer_seconds), even=True)
    rows = [
        Row("soak: streams at once", phase.streams, ""),
        Row("soak: answers", len(phase.meter.of("answered")), ""),
        Row("soak: errors", len(phase.meter.told) - len(phase.meter.of("answered")), ""),
    ]
    for name, (unit, of) in _GROWS.items():
        before, after = phase.looks.ends(of, after=phase.settled)
        rows.append(Row(f"soak: {name} at the end", after, unit, before, "settled", after / before if before else 1.0))
    return rows, failures(phase)
