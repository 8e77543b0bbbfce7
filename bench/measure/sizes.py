"""What must not depend on how much there is: a long conversation, many tasks."""

import asyncio
from functools import partial
from itertools import repeat

from bench.compared import in_turns, p50_ms
from bench.drivers import load
from bench.drivers.load import Call
from bench.rows import Row
from bench.stage import FEW, MANY, Services, Stage

_SUMMARY_SECONDS = 1.0  # at most, of an instant model


async def open_threads(stage: Stage) -> Row:
    chat, long = stage.chat, f"{stage.scale.long_thread:,} items"
    return await _compare(
        stage,
        "open a long thread",
        "20 items",
        lambda: chat.open_thread(next(stage.short_threads)),
        long,
        lambda: chat.open_thread(stage.long_thread),
    )


async def turns_in_threads(stage: Stage) -> Row:
    long = await summarise(stage)
    short = stage.chat.turns(stage.short_threads, "add milk")
    return await _compare(stage, "turn in a long thread", "20 items", short, f"{stage.scale.long_thread:,} items", long)


async def summarise(stage: Services) -> Call:
    """Turns in the long thread, of which as much is summarised as ever will be."""
    long = stage.chat.turns(repeat(stage.long_thread), "add milk")
    made = -1
    while made < (made := stage.place.seed("summaries", stage.long_thread)):
        await long()  # after which what is old is summarised, a part at a time
        await asyncio.sleep(_SUMMARY_SECONDS)
    return long


async def first_pages(stage: Stage) -> Row:
    few, many = partial(stage.tools.first_page, FEW), partial(stage.tools.first_page, MANY)
    return await _compare(stage, "first page of many tasks", "20 tasks", few, f"{stage.scale.tasks:,} tasks", many)


async def _compare(stage: Stage, name: str, little: str, few: Call, much: str, many: Call) -> Row:
    """In shorter rounds, because the two are close to each other."""
    seconds = stage.scale.seconds / 2
    sides = {size: partial(load.run, call, callers=1, seconds=seconds) for size, call in ((little, few), (much, many))}
    return (await in_turns(stage.scale.rounds, sides)).row(name, "ms", p50_ms, much, little)
