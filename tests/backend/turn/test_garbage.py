"""What a finished answer leaves to Python's collector of garbage, which stops everybody's answers while it looks."""

import asyncio
import gc
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.backend.conftest import Rows
from tests.backend.slow_turns import SLOW, read_text
from tests.chatkit_client import ChatKit, user_input
from tests.runs_client import Runs
from tests.scripted_model import ScriptedModel
from tests.waiting import until

LONG = {"text": "word " * 500, "reasoning": "thought " * 100}
KEPT = ("backend.", "service.", "agents.", "openai.", "starlette.", "uvicorn.", "uvloop.", "anyio.")
"""The modules whose objects are looked at: the client of the test is in the same process."""


@contextmanager
def garbage() -> Iterator[Counter[str]]:
    """By type, when it is over: what was referred to in cycles alone."""
    left = Counter[str]()
    gc.collect()
    gc.disable()
    try:
        yield left
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        kinds: list[type[Any]] = [type(one) for one in gc.garbage]
        left.update(f"{kind.__module__}.{kind.__name__}" for kind in kinds if kind.__module__.startswith(KEPT))
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()


async def test_an_answer_is_freed_when_it_is_over(chat: ChatKit, model: ScriptedModel) -> None:
    thread = (await chat.say("show all")).thread_id  # what is made once is made
    with garbage() as left:
        for _ in range(3):
            await model.script(LONG)
            assert (await chat.say("go on", thread)).text.startswith("word word")
        await chat.say("add milk today", thread)
    assert left == {}


async def test_so_is_one_that_was_published(chat: ChatKit, model: ScriptedModel) -> None:
    async with Runs(chat.base_url) as runs:
        await runs.say("mine", "show all")
        with garbage() as left:
            await model.script(LONG)
            await runs.say("mine", "go on")
    assert left == {}


async def test_so_is_one_whose_reader_left(chat: ChatKit, model: ScriptedModel, rows: Rows) -> None:
    thread = (await chat.say("show all")).thread_id
    with garbage() as left:
        await model.script(SLOW)
        async with chat.open("threads.add_user_message", thread_id=thread, input=user_input("count")) as events:
            await read_text(events, at_least=8)
        await until(lambda: rows("SELECT count(*) FROM runs WHERE outcome = 'cancelled'") == [{"count": 1}])
        await asyncio.sleep(0.1)
    assert left == {}


async def test_so_is_a_connection_that_was_closed(chat: ChatKit) -> None:
    with garbage() as left:
        for _ in range(3):
            assert (await chat.http.get("/health", headers={"connection": "close"})).status_code == 200
        await asyncio.sleep(0.1)
    assert left == {}
