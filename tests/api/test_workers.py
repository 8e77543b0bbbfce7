"""A backend of four processes behind one port: one that dies costs its own answers only."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.processes import ServiceProcess
from tests.scripted_model import ScriptedModel
from tests.support.answers import list_texts
from tests.support.backends import LocalBackend
from tests.support.completions import check_pairs
from tests.support.model_requests import requests_to
from tests.support.script import PAUSING, SLOW_TEXT, add_task, says
from tests.support.stack import Services
from tests.support.stored import Stored
from tests.support.users import User
from tests.waiting import WAIT_SECONDS, until
from todo_client.chatkit import user_input
from todo_client.connection import ConnectionLost

pytestmark = pytest.mark.long(seconds=15)

PROCESSES = 4


@pytest.fixture(scope="module")
def service(services: Services, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    """Whether it runs or not."""
    log = tmp_path_factory.mktemp("workers") / "log"
    environment = {**services.backend_environment(), "BACKEND_WORKERS": str(PROCESSES)}
    service = ServiceProcess("backend", "BACKEND_PORT", log, **environment)
    yield service
    if service.is_running:
        assert service.end() == 0
    assert "Traceback" not in service.log_text, service.log_text


@pytest.fixture
async def users(service: ServiceProcess, services: Services) -> AsyncIterator[list[User]]:
    """Eight connections of one user each, which the kernel gives to whichever process is free."""
    if not service.is_running:
        service.start()
    await asyncio.to_thread(service.wait_until_all_serve, PROCESSES)
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(User(LocalBackend(services, service.url))) for _ in range(8)]


async def read_until_text(events: AsyncIterator[dict[str, Any]]) -> str:
    """The conversation, once some text of the answer is there."""
    thread = ""
    async for event in events:
        thread = thread or event.get("thread", {}).get("id", "")
        if event["type"] == "thread.item.updated" and "delta" in event["update"]:
            break
    return thread


async def reads_to_the_end(events: AsyncIterator[dict[str, Any]]) -> bool:
    try:
        _ = [event async for event in events]
    except ConnectionLost:
        return False
    return True


async def test_dead_process_costs_its_own_answers(
    service: ServiceProcess, users: list[User], model: ScriptedModel, stored: Stored
) -> None:
    """The others go on, and the conversations of the dead one are free when it is seen to be dead."""
    await model.script(*[PAUSING] * len(users), *[says("Hello.")] * len(users))
    async with AsyncExitStack() as streams:
        answers = [
            await streams.enter_async_context(user.chatkit.open("threads.create", input=user_input("count")))
            for user in users
        ]
        threads = await asyncio.gather(*map(read_until_text, answers))
        os.kill(service.workers[0], signal.SIGKILL)
        await model.release()
        ended = await asyncio.gather(*map(reads_to_the_end, answers))
    await until(lambda: all(stored.run_statuses(user.name) != ["running"] for user in users))
    for user, whole in zip(users, ended, strict=True):
        assert stored.run_statuses(user.name) == ["completed" if whole else "interrupted"]
    for user, thread in zip(users, threads, strict=True):
        assert (await user.chatkit.say("hello", thread)).text == "Hello."
    await asyncio.to_thread(service.wait_until_all_serve, PROCESSES)


async def test_orderly_end_leaves_each_answer_with_its_outcome(
    service: ServiceProcess, users: list[User], model: ScriptedModel, stored: Stored
) -> None:
    texts = [f"add, then count, number {number}" for number in range(len(users))]
    await model.script(*({**step, "when": text} for text in texts for step in (add_task("milk"), PAUSING)))
    async with AsyncExitStack() as streams:
        answers = [
            await streams.enter_async_context(user.chatkit.open("threads.create", input=user_input(text)))
            for user, text in zip(users, texts, strict=True)
        ]
        await asyncio.gather(*map(read_until_text, answers))
        assert await asyncio.to_thread(service.end) == 0
        rests = [[event async for event in events] for events in answers]
    assert [rest[-1]["type"] for rest in rests] == ["error"] * len(users)
    service.start()
    await asyncio.to_thread(service.wait_until_all_serve, PROCESSES)
    for user, said in zip(users, texts, strict=True):
        assert stored.run_statuses(user.name) == ["interrupted"]
        assert stored.titles(user.name) == ["milk"]
        [thread] = stored.conversations(user.name)
        [first, text] = await list_texts(user, thread)
        assert first == said
        assert text
        assert SLOW_TEXT.startswith(text)
    await model.script(*[says("Hello.")] * len(users))
    for user in users:
        await user.chatkit.say("hello", stored.conversations(user.name)[0])
    for body in await requests_to(model):
        check_pairs(body["messages"])


def test_too_many_processes(services: Services, tmp_path: Path) -> None:
    environment = {**services.backend_environment(), "BACKEND_WORKERS": "100"}
    service = ServiceProcess("backend", "BACKEND_PORT", tmp_path / "log", **environment)
    service.start()
    assert service.process is not None
    assert service.process.wait(WAIT_SECONDS) == os.EX_CONFIG
    assert "BACKEND_WORKERS" in service.log_text
