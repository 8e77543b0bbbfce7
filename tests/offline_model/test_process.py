"""`python -m offline_model` as it is started by people and by `./todo up`."""

import asyncio
import os
import signal
import socket
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx2
import pytest


@asynccontextmanager
async def started(**settings: str) -> AsyncIterator[Process]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("OFFLINE_")}
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "offline_model", env=environment | settings, stdout=PIPE, stderr=PIPE
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


async def wait_until_listening(port: int) -> None:
    """The line is written once the application has started, just before its port accepts connections."""
    while True:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            await asyncio.sleep(0.01)
        else:
            writer.close()
            return


async def test_sigterm_ends_it_in_the_middle_of_a_stream():
    port = free_port()
    async with started(OFFLINE_PORT=str(port), OFFLINE_TOKEN_DELAY="60") as process, asyncio.timeout(20):
        assert process.stderr
        while b"running on" not in (line := await process.stderr.readline()):
            assert line
        await wait_until_listening(port)
        body = {"stream": True, "messages": [{"role": "user", "content": "hello"}]}
        async with (
            httpx2.AsyncClient(timeout=20) as client,
            client.stream("POST", f"http://127.0.0.1:{port}/v1/chat/completions", json=body) as response,
        ):
            assert response.status_code == 200
            process.send_signal(signal.SIGTERM)
            async with asyncio.timeout(5):
                await process.wait()
        assert b"ERROR" not in await process.stderr.read()


async def test_who_leaves_in_the_middle_of_a_stream_leaves_no_error():
    port = free_port()
    async with started(OFFLINE_PORT=str(port), OFFLINE_TOKEN_DELAY="0.01") as process, asyncio.timeout(20):
        assert process.stderr
        while b"running on" not in (line := await process.stderr.readline()):
            assert line
        await wait_until_listening(port)
        body = {"stream": True, "messages": [{"role": "user", "content": "hello"}]}
        async with httpx2.AsyncClient(timeout=20, base_url=f"http://127.0.0.1:{port}") as client:
            async with client.stream("POST", "/v1/chat/completions", json=body) as response:
                async for _ in response.aiter_raw():
                    break
            again = await client.post("/v1/chat/completions", json=body)
            assert again.text.endswith("data: [DONE]\n\n")
        process.send_signal(signal.SIGTERM)
        await process.wait()
        assert await process.stderr.read() == b""


@pytest.mark.parametrize(
    ("name", "value"), [("OFFLINE_PORT", "many"), ("OFFLINE_TOKEN_DELAY", "-1"), ("LIMIT_HEADERS", "few")]
)
async def test_settings_that_cannot_work(name: str, value: str):
    async with started(**{name: value}) as process:
        _, errors = await process.communicate()
    assert errors.decode().startswith(name)
    assert errors.count(b"\n") == 1
    assert process.returncode == os.EX_CONFIG
