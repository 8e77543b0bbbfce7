"""What is told of a model that does not answer."""

import asyncio
from collections.abc import AsyncIterator

import openai
import pytest

from backend.model.client import ProviderClient
from backend.model.errors import describe
from backend.model.providers import PROFILES, Endpoint
from tests.conftest import find_free_port

UNREACHABLE = ("The model cannot be reached right now. Try again in a moment.", True)


@pytest.fixture
async def leaving() -> AsyncIterator[int]:
    """The port of a server that reads a request and leaves."""

    async def leave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(leave, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


async def fault(port: int) -> openai.APIError:
    client = ProviderClient(Endpoint(PROFILES["custom"], f"http://127.0.0.1:{port}/v1", "none", "m"))
    try:
        with pytest.raises(openai.APIError) as raised:
            await client.create(model="m", messages=[{"role": "user", "content": "hi"}], stream=True)
    finally:
        await client.close()
    return raised.value


async def test_where_nothing_listens_it_cannot_be_reached() -> None:
    assert describe(await fault(find_free_port())) == UNREACHABLE


async def test_one_that_leaves_before_it_answers_cannot_be_reached(leaving: int) -> None:
    assert describe(await fault(leaving)) == UNREACHABLE
