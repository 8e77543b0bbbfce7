"""What one tool turn asks of PostgreSQL, counted on the wire of both services."""

import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from statistics import median

from bench.drivers.product import Chat
from bench.endpoints.relay import Relay
from bench.rows import Row
from bench.stage import Stage

TURNS = 20


@asynccontextmanager
async def relayed(database_url: str) -> AsyncIterator[Relay]:
    with tempfile.TemporaryDirectory(prefix="todo-relay-") as directory:  # short: a socket's path is limited
        relay = Relay(database_url, Path(directory))
        await relay.start()
        try:
            yield relay
        finally:
            await relay.stop()


async def database(stage: Stage) -> list[Row]:
    async with relayed(stage.place.database_url) as relay:
        mcp = stage.place.mcp_server(relay.url)
        backend = stage.place.backend(relay.url, mcp)
        try:
            await mcp.ready()
            await backend.ready()
            chat = Chat(backend.port)
            counted = []
            for _ in range(TURNS):
                before = relay.counts
                await chat.say(next(stage.threads), "add milk")
                counted.append(relay.counts - before)
        finally:
            await backend.stop()
            await mcp.stop()
    return [
        Row("transactions in a tool turn", median(turn.transactions for turn in counted), ""),
        Row("round trips in a tool turn", median(turn.round_trips for turn in counted), ""),
    ]
