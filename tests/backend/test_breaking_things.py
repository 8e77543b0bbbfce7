"""Real sockets, real processes, real kills."""

import asyncio
import itertools
import json
import random
import re
import secrets
import signal
import socket
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from client.chatkit import request, user_input
from tests.backend.conftest import Backend, Rows
from tests.chatkit_client import ChatKit, text_of
from tests.processes import ServiceProcess
from tests.scripted_model import ScriptedModel
from tests.waiting import until

WHOLE = 6_500  # bytes, about what the stream of the words below takes
WORDS = "one two three four five six seven eight nine ten eleven twelve"


@pytest.mark.parametrize("share", [n / 50 for n in range(50)])
async def test_a_disconnect_at_any_byte_keeps_what_was_written(
    chat: ChatKit, model: ScriptedModel, rows: Rows, share: float
) -> None:
    """50 places in the stream, over a raw socket that is closed with unread data in it."""
    await model.script({"text": WORDS, "chunk_chars": 3, "token_delay": 0.004})
    received = await read_bytes(chat.base_url, count=int(share * WHOLE))
    started = time.monotonic()
    await until(lambda: not rows("SELECT 1 FROM runs WHERE status = 'running'"), seconds=1.5)
    if any(request["outcome"] == "client_closed" for request in await model.finished_requests()):
        assert time.monotonic() - started < 1
    assert b"HTTP/1.1 200".startswith(received[:12])
    shown = shown_text(received)
    stored = [row["item"] for row in rows("SELECT item FROM messages WHERE kind = 'assistant_message'")]
    text = text_of(stored[0]) if stored else ""
    assert text.startswith(shown)
    assert WORDS.startswith(text)
    if b'"user_message"' in received:
        assert len(rows("SELECT 1 FROM messages WHERE kind = 'user_message'")) == 1


async def read_bytes(base_url: str, *, count: int) -> bytes:
    """The first bytes of an answer; then the connection is reset."""
    port = int(base_url.rsplit(":", 1)[1])
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    body = json.dumps(request("threads.create", input=user_input("count"))).encode()
    head = "POST /chatkit HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n"
    writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
    received = b""
    while len(received) < count and (more := await reader.read(count - len(received))):
        received += more
    linger = (1).to_bytes(4, "little") + (0).to_bytes(4, "little")  # reset instead of a polite end
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    writer.close()
    return received


def shown_text(received: bytes) -> str:
    return "".join(re.findall(r'"delta":"([^"]*)"', received.decode(errors="ignore")))


@pytest.fixture
async def chat_beside(mcp: ServiceProcess, backend: Backend) -> AsyncIterator[ChatKit]:
    async with backend(mcp_internal_url=f"{mcp.url}/mcp") as chat:
        yield chat


@pytest.mark.long
@pytest.mark.alone
async def test_a_restart_of_the_tool_server_in_the_middle_of_a_turn_is_not_seen(
    chat_beside: ChatKit, mcp: ServiceProcess, rows: Rows
) -> None:
    first = await chat_beside.say("add milk")
    mcp.end(signal.SIGKILL)
    asyncio.get_running_loop().call_later(1, mcp.start)
    answer = await chat_beside.say("add bread", first.thread_id)
    assert answer.error is None
    assert [row["title"] for row in rows("SELECT title FROM tasks ORDER BY id")] == ["milk", "bread"]


@pytest.mark.long
async def test_a_tool_server_that_stays_away_fails_the_turn_and_the_next_one_works(
    mcp: ServiceProcess, backend: Backend, rows: Rows
) -> None:
    async with backend(mcp_internal_url=f"{mcp.url}/mcp", mcp_resend_seconds=0.5) as chat:
        first = await chat.say("add milk")
        mcp.end(signal.SIGKILL)
        failed = await chat.say("add bread", first.thread_id)
        assert failed.error is not None
        assert "task service cannot be reached" in failed.error["message"]
        assert failed.error["allow_retry"] is True
        mcp.start()
        await asyncio.to_thread(mcp.wait_until_ready)
        retried = await chat.stream("threads.retry_after_item", thread_id=first.thread_id, item_id=failed.user_item_id)
        assert retried.error is None
    assert [row["title"] for row in rows("SELECT title FROM tasks ORDER BY id")] == ["milk", "bread"]


@pytest.mark.long
async def test_two_backend_processes_never_interleave_one_conversation(
    mcp: ServiceProcess, model: ScriptedModel, database_url: str, tmp_path: Path, rows: Rows
) -> None:
    environment = {
        "DATABASE_URL": database_url,
        "MCP_URL": f"{mcp.url}/mcp",
        "LLM_PROVIDER": "offline",
        "LLM_BASE_URL": model.openai_base_url,
    }
    backends = [ServiceProcess("backend", "BACKEND_PORT", tmp_path / f"{n}.log", **environment) for n in (1, 2)]
    for backend in backends:
        backend.start()
    try:
        for backend in backends:
            await asyncio.to_thread(backend.wait_until_ready)
        async with ChatKit(backends[0].url) as one, ChatKit(backends[1].url) as two:
            thread = (await one.say("hello")).thread_id
            answers = []
            for number in range(5):
                answers += await asyncio.gather(*(chat.say(f"add wish {number}", thread) for chat in (one, two) * 2))
    finally:
        exits = [backend.end() for backend in backends]
    assert exits == [0, 0]
    accepted = [answer for answer in answers if answer.error is None]
    assert len(accepted) >= 5
    assert all("still answering" in answer.error["message"] for answer in answers if answer.error)
    runs = [row["run_id"] for row in rows("SELECT run_id FROM messages ORDER BY seq")]
    changes = sum(one != other for one, other in itertools.pairwise(runs))
    assert changes == len(accepted), "the rows of one turn stand together"
    assert len(rows("SELECT 1 FROM tasks")) == len(accepted)


@pytest.mark.long
@pytest.mark.alone
async def test_restarts_of_the_tool_server_under_eight_conversations(
    chat_beside: ChatKit, mcp: ServiceProcess, rows: Rows
) -> None:
    done = asyncio.Event()
    answers: list[Any] = []

    async def converse(number: int) -> None:
        thread = None
        while not done.is_set():
            answer = await chat_beside.say(f"add wish {number} {secrets.token_hex(4)}", thread)
            answers.append(answer)
            thread = answer.thread_id
            await asyncio.sleep(0.05)

    talking = [asyncio.create_task(converse(number)) for number in range(8)]
    chance = random.Random(3)
    for restart in range(3):
        await asyncio.sleep(chance.uniform(0.1, 0.5))
        mcp.end(signal.SIGKILL if restart % 2 else signal.SIGTERM)
        await asyncio.sleep(chance.choice([0, 0.5, 2, 4.5]))
        mcp.start()
        await asyncio.to_thread(mcp.wait_until_ready)
    await asyncio.sleep(0.5)
    done.set()
    await asyncio.gather(*talking)
    assert [answer.error for answer in answers if answer.error] == []
    assert len(answers) >= 20
    titles = [row["title"] for row in rows("SELECT title FROM tasks")]
    assert len(titles) == len(set(titles)) == len(answers)
