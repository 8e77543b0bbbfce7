"""Answers that are followed: what a second reader costs, and how soon one who comes back catches up."""

import asyncio
import json
from functools import partial

from bench.compared import in_turns, p50_ms, paired
from bench.drivers import load
from bench.drivers.product import Chat, Interaction, message
from bench.processes import cpu_seconds
from bench.rows import Row
from bench.stage import Services, Stage

BEHIND = 200  # events
STREAMS = 50
_SETTLED_SECONDS = 0.3
_TOLD_SECONDS = 1.0
_AT_ONCE = 10  # readers: one person may have 20


async def followed_tokens(stage: Stage) -> list[Row]:
    return [await _followed_token(stage, streams) for streams in (1, STREAMS)]


async def _followed_token(stage: Stage, streams: int) -> Row:
    plain: list[float] = []
    added: list[float] = []
    for _ in range(stage.scale.long_rounds):
        plain.append(await token_us(stage, streams, followed=False))
        added.append(await token_us(stage, streams, followed=True) - plain[-1])
    name = f"what a follower adds to a token, {streams} stream{'s' * (streams > 1)}"
    return paired(name, "µs", added, plain, "a token")


async def token_us(stage: Services, streams: int, *, followed: bool) -> float:
    """CPU of the backend; what it computes while nothing is said is left out."""
    idle, _ = await _told(stage, 0, _TOLD_SECONDS / 3, followed=False)
    cpu, tokens = await _told(stage, streams, _TOLD_SECONDS, followed=followed)
    return (cpu - idle * 3) * 1_000_000 / tokens


async def _told(stage: Services, streams: int, seconds: float, *, followed: bool) -> tuple[float, int]:
    """The CPU that the backend took, and how many tokens were told meanwhile."""
    threads = [next(stage.threads) for _ in range(streams)]
    answers = [await stage.chat.http.hold("/chatkit", message(thread, "tell")) for thread in threads]
    for first in range(0, streams if followed else 0, _AT_ONCE):
        await asyncio.gather(*[_follow(stage.chat, thread) for thread in threads[first : first + _AT_ONCE]])
    while (await _said(stage))["telling"] < streams:  # one that began after the release would never end
        await asyncio.sleep(0.01)
    await asyncio.sleep(_SETTLED_SECONDS)
    cpu, tokens = cpu_seconds(stage.backend.pid), (await _said(stage))["told"]
    await asyncio.sleep(seconds)
    cpu, tokens = cpu_seconds(stage.backend.pid) - cpu, (await _said(stage))["told"] - tokens
    await stage.model.post("/release", {})
    await asyncio.gather(*answers)
    return cpu, tokens


async def _follow(chat: Chat, thread: str) -> None:
    await chat.follow(await chat.answering(thread))


async def _said(stage: Services) -> dict[str, int]:
    _, body = await stage.model.post("/told", {})
    return json.loads(body)


async def resumed_readers(stage: Stage) -> list[Row]:
    """From the request to what the reader had not read yet; beside it, what is stored of the same answer."""
    chat, seconds = stage.chat, stage.scale.seconds
    ended, behind = await long_answer(stage)
    running = await chat.interact("running", "tell", to_its_end=False)
    await asyncio.sleep(1)
    sides = {
        "running": partial(chat.follow, running, after=2),
        "ended": partial(chat.read_on, ended, after=behind),
        "stored": partial(chat.stored, ended),
    }
    loads = await in_turns(
        stage.scale.rounds, {name: partial(load.run, call, callers=1, seconds=seconds) for name, call in sides.items()}
    )
    await stage.model.post("/release", {})
    name, against = "a resumed reader", "stored"
    return [
        loads.row(f"{name}, of a running answer", "ms", p50_ms, "running", against),
        loads.row(f"{name}, {BEHIND} events behind", "ms", p50_ms, "ended", against),
    ]


async def long_answer(stage: Services) -> tuple[Interaction, int]:
    """An answer that has ended with many messages, and the number of one in their middle."""
    ended = await stage.chat.interact("ended", "say 5")
    return ended, stage.place.seed("lengthen_run", ended.run, messages=2 * BEHIND)
