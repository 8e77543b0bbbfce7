"""Half load for long, with tasks that are added meanwhile: whether anything grows."""

import asyncio
from collections.abc import Callable

from bench.measure.capacity.under_load import Answers, Load, failures
from bench.measure.capacity.watched import Look
from bench.rows import Row

_MIB = 1024 * 1024
_ADDED_A_SECOND = 0.5
_GROWS: dict[str, tuple[str, Callable[[Look], float]]] = {
    "memory": ("MiB", lambda look: look.memory / _MIB),
    "connections": ("", lambda look: look.connections),
    "tasks": ("", lambda look: look.tasks),
    "descriptors": ("", lambda look: look.descriptors),
    "the tool server's memory": ("MiB", lambda look: look.tool_server_memory / _MIB),
    "the tool server's descriptors": ("", lambda look: look.tool_server_descriptors),
}


async def soak(load: Load) -> tuple[list[Row], list[str]]:
    """Answers come evenly, so that as many run in the end as in the beginning."""
    capacity = await load.capacity()
    async with asyncio.TaskGroup() as turns:
        adding = turns.create_task(load.add_tasks(_ADDED_A_SECOND))
        phase = await load.phase("soak", capacity / 2, Answers(load.answer_seconds), even=True)
    told = phase.meter.told + adding.result().told
    rows = [
        Row("soak: streams at once", phase.streams, ""),
        Row("soak: answers", len(phase.meter.of("answered")), ""),
        Row("soak: tasks added", len(adding.result().of("answered")), ""),
        Row("soak: errors", sum(one.outcome != "answered" for one in told), ""),
    ]
    for name, (unit, of) in _GROWS.items():
        before, after = phase.looks.ends(of, after=phase.settled)
        rows.append(Row(f"soak: {name} at the end", after, unit, before, "settled", after / before if before else 1.0))
    return rows, failures(phase.meter) + failures(adding.result())
