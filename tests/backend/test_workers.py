"""Four processes behind one port: what holds with one holds with four."""

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from backend.turn.lifecycle import endings
from client.chatkit import ConnectionLost
from tests.backend.completions import check_pairs
from tests.backend.conftest import Rows
from tests.backend.slow_turns import SLOW, read_text
from tests.chatkit_client import Answer, ChatKit, text_of, user_input
from tests.processes import ServiceProcess
from tests.scripted_model import ScriptedModel

pytestmark = pytest.mark.long(seconds=15)


FREE_SECONDS = 2.0
AT_ONCE = 16  # connections, which the kernel gives to whichever process is free


@pytest.fixture(scope="module")
def mcp(session_database_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    log = tmp_path_factory.mktemp("mcp") / "log"
    service = ServiceProcess("mcp_server", "MCP_PORT", log, DATABASE_URL=session_database_url, MCP_WORKERS="4")
    service.start()
    service.wait_until_all_serve(4)
    yield service
    assert service.end() == 0


@pytest.fixture
async def model(model_service: ServiceProcess) -> AsyncIterator[ScriptedModel]:
    model = ScriptedModel(model_service.url)
    await model.reset()
    yield model
    await model.aclose()


@pytest.fixture(scope="module")
def four(
    mcp: ServiceProcess,
    model_service: ServiceProcess,
    session_database_url: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> Callable[..., ServiceProcess]:
    """Makes a backend of four processes, which is not started yet."""

    def make(**environment: str) -> ServiceProcess:
        return ServiceProcess(
            "backend",
            "BACKEND_PORT",
            tmp_path_factory.mktemp("backend") / "log",
            DATABASE_URL=session_database_url,
            MCP_URL=f"{mcp.url}/mcp",
            LLM_PROVIDER="offline",
            LLM_BASE_URL=f"{model_service.url}/v1",
            BACKEND_WORKERS="4",
            HEARTBEAT_SECONDS="0.3",
            **{"LEASE_SECONDS": "2", **environment},
        )

    return make


@pytest.fixture
def start(four: Callable[..., ServiceProcess], database_url: str) -> Iterator[Callable[..., ServiceProcess]]:
    """Starts a backend of the test's own, and waits until all of its processes serve."""
    started: list[ServiceProcess] = []

    def start(**environment: str) -> ServiceProcess:
        service = four(**environment)
        service.start()
        started.append(service)
        service.wait_until_all_serve(4)
        return service

    yield start
    for service in started:
        end(service)


def end(service: ServiceProcess) -> None:
    if service.is_running:
        assert service.end() == 0
    assert "Traceback" not in service.log_text, service.log_text


@pytest.fixture(scope="module")
def kept(four: Callable[..., ServiceProcess]) -> Iterator[ServiceProcess]:
    """One for all tests that ask nothing special of it, whether it runs or not."""
    service = four()
    yield service
    end(service)


@pytest.fixture
def service(kept: ServiceProcess, database_url: str) -> ServiceProcess:
    """That one, with all of its processes; it is started again where a test has ended it."""
    if not kept.is_running:
        kept.start()
    kept.wait_until_all_serve(4)
    return kept


@pytest.fixture
async def crowd(service: ServiceProcess) -> AsyncIterator[list[ChatKit]]:
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(ChatKit(service.url)) for _ in range(AT_ONCE)]


async def say_at_once(crowd: list[ChatKit], text: str, thread: str | None = None) -> list[Answer]:
    return await asyncio.gather(*(chat.say(text, thread) for chat in crowd))


async def test_of_messages_at_once_in_one_conversation_one_is_answered(
    crowd: list[ChatKit], model: ScriptedModel, rows: Rows
) -> None:
    thread = (await crowd[0].say("hello")).thread_id
    await model.script(SLOW)
    answers = await say_at_once(crowd, "count", thread)
    refused = [answer.error for answer in answers if answer.error]
    assert len(refused) == AT_ONCE - 1
    assert all("still answering" in error["message"] for error in refused)
    assert len(rows("SELECT 1 FROM messages WHERE kind = 'user_message'")) == 2


async def test_a_conversation_is_deleted_while_any_process_answers_in_it(
    crowd: list[ChatKit], model: ScriptedModel, rows: Rows
) -> None:
    await model.script(*[SLOW] * AT_ONCE)

    async def delete_midway(chat: ChatKit, other: ChatKit) -> None:
        async with chat.open("threads.create", input=user_input("count")) as events:
            thread = (await anext(events))["thread"]["id"]
            await read_text(events, at_least=4)
            async with asyncio.timeout(10):
                await other.ask("threads.delete", thread_id=thread)
            _ = [event async for event in events]
        assert (await other.post("threads.get_by_id", thread_id=thread)).status_code == 404

    await asyncio.gather(*(delete_midway(*pair) for pair in zip(crowd[::2], crowd[1::2], strict=True)))
    assert rows("SELECT 1 FROM messages") == rows("SELECT 1 FROM conversations") == []
    ended = rows("SELECT status, outcome, conversation_id FROM runs")
    assert ended == [{"status": "ended", "outcome": "cancelled", "conversation_id": None}] * (AT_ONCE // 2)
    outcomes = [request["outcome"] for request in await model.finished_requests()]
    assert outcomes == ["client_closed"] * (AT_ONCE // 2)


async def test_the_limits_of_a_person_hold_across_processes(
    start: Callable[..., ServiceProcess], model: ScriptedModel, rows: Rows
) -> None:
    service = start(LIMIT_RUNNING_TURNS="3", LIMIT_TURNS_PER_MINUTE="5")
    await model.script(*[SLOW] * 3)
    async with AsyncExitStack() as stack:
        crowd = [await stack.enter_async_context(ChatKit(service.url)) for _ in range(AT_ONCE)]
        first = await say_at_once(crowd, "count")
        assert len([answer for answer in first if answer.error is None]) == 3
        assert all("3 at once" in answer.error["message"] for answer in first if answer.error)
        in_the_minute = 0
        for chat in crowd:
            answer = await chat.say("hello")
            in_the_minute += answer.error is None
        assert in_the_minute == 2
    assert len(rows("SELECT 1 FROM runs")) == 5


async def test_the_death_of_one_process_costs_its_own_turn_and_frees_its_conversation_at_once(
    start: Callable[..., ServiceProcess], model: ScriptedModel, rows: Rows
) -> None:
    service = start(LEASE_SECONDS="60")
    for _ in range(3):
        await model.script(SLOW)
        async with ChatKit(service.url) as chat, chat.open("threads.create", input=user_input("count")) as events:
            thread = (await anext(events))["thread"]["id"]
            await read_text(events, at_least=4)
            reading = asyncio.create_task(_read_to_the_end(events))
            killed = time.monotonic()
            os.kill(await worker_of(service, rows, thread), signal.SIGKILL)
            assert not await reading
        async with ChatKit(service.url) as chat:
            while (await chat.say("hello", thread)).error is not None:
                assert time.monotonic() - killed < FREE_SECONDS
                await asyncio.sleep(0.05)
        assert time.monotonic() - killed < FREE_SECONDS
        await asyncio.to_thread(service.wait_until_all_serve, 4)
    outcomes = rows("SELECT outcome, count(*) AS n FROM runs GROUP BY 1 ORDER BY 1")
    assert outcomes == [{"outcome": "completed", "n": 3}, {"outcome": "interrupted", "n": 3}]
    told = rows("SELECT item->'task'->>'title' AS title FROM messages WHERE kind = 'task'")
    assert [row["title"] for row in told] == [endings.cut("interrupted").sentence] * 3


async def worker_of(service: ServiceProcess, rows: Rows, thread: str) -> int:
    """The process that answers in this conversation."""
    found = rows("SELECT worker FROM runs WHERE status = 'running' AND conversation_id = %s", thread)
    return service.names[found[0]["worker"]]


async def test_no_worker_ends_the_turns_of_another(
    service: ServiceProcess, start: Callable[..., ServiceProcess], model: ScriptedModel, rows: Rows
) -> None:
    first, second = service, start()
    names = set(first.names) | set(second.names)
    assert len(names) == 8, "each process has a name of its own"
    await model.script(SLOW)
    async with ChatKit(first.url) as chat, chat.open("threads.create", input=user_input("count")) as events:
        thread = (await anext(events))["thread"]["id"]
        mine = await worker_of(first, rows, thread)
        for pid in {*first.workers, *second.workers} - {mine}:
            os.kill(pid, signal.SIGKILL)
        assert await _read_to_the_end(events)
    assert rows("SELECT outcome FROM runs") == [{"outcome": "completed"}]


async def _read_to_the_end(events: Any) -> bool:
    try:
        _ = [event async for event in events]
    except ConnectionLost:
        return False
    return True


async def test_an_end_in_the_middle_of_answers_leaves_each_with_its_outcome(
    service: ServiceProcess, model: ScriptedModel, rows: Rows
) -> None:
    call = {"name": "add_task", "arguments": {"title": "milk"}}
    for _ in range(8):
        await model.script({"tool_calls": [call]})
    await model.script(*[SLOW] * 8)

    async def be_interrupted(chat: ChatKit, answering: asyncio.Barrier) -> str:
        async with chat.open("threads.create", input=user_input("add milk, then count")) as events:
            shown = await read_text(events, at_least=4)
            await answering.wait()
            assert [event async for event in events][-1]["type"] == "error"
        return shown

    async with AsyncExitStack() as stack:
        crowd = [await stack.enter_async_context(ChatKit(service.url)) for _ in range(8)]
        answering = asyncio.Barrier(9)
        talking = [asyncio.create_task(be_interrupted(chat, answering)) for chat in crowd]
        await answering.wait()
        assert await asyncio.to_thread(service.end) == 0
        shown = await asyncio.gather(*talking)
    assert rows("SELECT outcome, count(*) AS turns FROM runs GROUP BY 1") == [{"outcome": "interrupted", "turns": 8}]
    stored = [text_of(row["item"]) for row in rows("SELECT item FROM messages WHERE kind = 'assistant_message'")]
    assert len(stored) == 8
    assert all(SLOW["text"].startswith(text) for text in stored)
    assert sum(map(len, stored)) >= sum(map(len, shown))
    kinds = rows("SELECT kind, count(*) AS n FROM messages WHERE kind LIKE 'tool%%' GROUP BY 1 ORDER BY 1")
    assert kinds == [{"kind": "tool_calls", "n": 8}, {"kind": "tool_output", "n": 8}]
    for request in await model.finished_requests():
        check_pairs(request["body"]["messages"])


def test_workers_that_are_too_many_are_refused(tmp_path: Path, database_url: str) -> None:
    service = ServiceProcess(
        "backend", "BACKEND_PORT", tmp_path / "log", DATABASE_URL=database_url, BACKEND_WORKERS="100"
    )
    service.start()
    assert service.process is not None
    assert service.process.wait(30) == os.EX_CONFIG
    assert service.log_text.startswith("BACKEND_WORKERS")
