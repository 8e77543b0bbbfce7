"""A process that follows runs: a line of JSON in says which, from where and how far; a line out has the events."""

import asyncio
import json
import os
import sys
from contextlib import aclosing
from typing import Any

from backend.conversation.runs.events import EVENTS_CHANNEL
from backend.turn.following.payloads import to_payload
from backend.turn.following.reader import Following
from service.database import create_engine, listen


async def serve() -> None:
    engine = create_engine(os.environ["DATABASE_URL"], pool_size=10)
    following = Following(engine, lambda _: None)
    channels = {EVENTS_CHANNEL: lambda run_ids: following.heard(run_ids.split())}
    listening = asyncio.create_task(listen(engine.url, channels, again_seconds=1))
    asked = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(asked), sys.stdin)
    _write(-1, [])  # it is there
    answering = set[asyncio.Task[None]]()
    async for line in asked:
        answering.add(asyncio.create_task(_answer(following, **json.loads(line))))
    listening.cancel()
    await asyncio.gather(listening, *answering, return_exceptions=True)
    await engine.dispose()


async def _answer(following: Following, n: int, run: str, after: int, most: int) -> None:
    told: list[Any] = []
    async with aclosing(following.events(run, "local", after)) as events:
        async for numbered in events:
            if numbered is not None:
                told.append((numbered.seq, to_payload(numbered.event)))
            if len(told) == most:
                break
    _write(n, told)


def _write(n: int, told: list[Any]) -> None:
    sys.stdout.write(json.dumps({"n": n, "told": told}) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(serve())
