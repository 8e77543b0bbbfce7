"""A run belongs to the process that executes it, as long as that lives: cut off, frozen, or unsure what was stored."""

import asyncio
import signal
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from dataclasses import dataclass

import pytest
import pytest_asyncio

from tests.processes import ServiceProcess
from tests.runs_client import names
from tests.scripted_model import ScriptedModel
from tests.support.database_proxy import DatabaseProxy, database_proxy
from tests.support.script import call, calls, pausing_answer, says
from tests.support.stack import Services
from tests.support.stored import Stored
from tests.support.users import User
from tests.waiting import until
from todo_client.connection import ApiError, ConnectionLost

CHAT = "groceries"
DEAD_AFTER_SECONDS = 10  # for how long a process must look dead before others end its runs

pytestmark = [pytest.mark.long(seconds=60), pytest.mark.asyncio(loop_scope="module")]


@dataclass(frozen=True)
class Pair:
    """Two backends that listen to the database through a proxy; the first reads and writes through another one."""

    services: Services
    backends: list[ServiceProcess]
    listening: DatabaseProxy
    database: DatabaseProxy


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pair(services: Services, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Pair]:
    url, directory = services.database_url, tmp_path_factory.mktemp("backends")
    async with database_proxy(url) as listening, database_proxy(url) as database:
        listen = {"LISTEN_DATABASE_URL": listening.url}
        environments = [{"DATABASE_URL": database.url}, {}]
        backends = [
            ServiceProcess(
                "backend",
                "BACKEND_PORT",
                directory / f"backend-{number}.log",
                **{**services.backend_environment(), **listen, **environment},
            )
            for number, environment in enumerate(environments)
        ]
        with ExitStack() as cleanup:
            for backend in backends:
                backend.start()
                cleanup.callback(backend.end, signal.SIGKILL)
            for backend in backends:
                await asyncio.to_thread(backend.wait_until_ready)
            yield Pair(services, backends, listening, database)


@pytest_asyncio.fixture(loop_scope="module")
async def model(services: Services) -> AsyncIterator[ScriptedModel]:
    async with ScriptedModel(services.model.url) as model:
        yield model


@pytest.fixture
def stored(services: Services) -> Iterator[Stored]:
    with Stored(services.database_url) as stored:
        yield stored


async def answer(user: User, chat: str, key: str | None = None) -> list[str]:
    return names(await user.runs.say(chat, "count", key=key))


async def test_listening_connections_that_are_away_cost_no_run(
    pair: Pair, model: ScriptedModel, stored: Stored
) -> None:
    """Both processes are cut off, too short to be judged by others, and judge each other when they are back."""
    await model.script(pausing_answer("one ", "two"), pausing_answer("one ", "two"))
    async with User(pair) as user, user.at(1) as other, asyncio.TaskGroup() as answers:
        running = [answers.create_task(answer(user, "one")), answers.create_task(answer(other, "two"))]
        await model.received_requests(2)
        await pair.listening.cut()
        await asyncio.sleep(1)
        await pair.listening.restore()
        await asyncio.sleep(DEAD_AFTER_SECONDS + 4)
        assert stored.run_statuses(user.name) == ["running"] * 2
        await model.release()
    assert all("answer" in one.result() for one in running)
    assert stored.run_statuses(user.name) == ["completed"] * 2


async def test_process_that_others_judge_dead_is_not_ready(pair: Pair) -> None:
    """A short interruption costs nothing; after a longer one the process would lose the runs that it started."""
    async with User(pair) as user:

        async def is_answered(status: int, text: str = "") -> bool:
            response = await user.runs.http.get("/ready")
            return response.status_code == status and text in response.text

        await pair.listening.cut()
        began = time.monotonic()
        await until(lambda: is_answered(503, "cannot listen to the database"))
        assert time.monotonic() - began > DEAD_AFTER_SECONDS - 4
        await pair.listening.restore()
        await until(lambda: is_answered(200))


async def test_frozen_process_keeps_its_run(pair: Pair, model: ScriptedModel, stored: Stored) -> None:
    await model.script(pausing_answer("one ", "two"))
    frozen = pair.backends[0]
    async with User(pair) as user, user.at(1) as other, asyncio.TaskGroup() as answers:
        running = answers.create_task(answer(user, CHAT))
        await model.received_requests(1)
        frozen.send(signal.SIGSTOP)
        await asyncio.sleep(DEAD_AFTER_SECONDS + 4)
        with pytest.raises(ApiError, match="still answering"):
            await answer(other, CHAT)
        frozen.send(signal.SIGCONT)
        await model.release()
    assert "answer" in running.result()
    assert stored.run_statuses(user.name) == ["completed"]


async def test_stop_that_no_notification_tells(pair: Pair, model: ScriptedModel, stored: Stored) -> None:
    """The process that executes the run does not listen when another one stores the stop: no call begins after it."""
    await model.script(calls(call("add_task", title="milk"), call("add_task", title="bread")), says("Added."))
    async with User(pair) as user, user.at(1) as other:
        with stored.lock_table("tasks"):
            running = asyncio.create_task(answer(user, CHAT))
            await until(stored.has_waiting_statements)
            await pair.listening.cut()
            [run] = stored.runs(user.name)
            await other.runs.cancel(CHAT, run.id)
        assert (await running)[-1] == "interaction_complete"
        await pair.listening.restore()
    assert stored.run_statuses(user.name) == ["cancelled"]
    assert stored.titles(user.name) == ["milk"]


async def test_run_whose_commit_was_not_confirmed_is_ended_by_its_own_process(
    pair: Pair, model: ScriptedModel, stored: Stored
) -> None:
    """The run is stored and the process never learns that; sent again under its key, the message is not there twice."""
    await model.script(says("Hello."))
    async with User(pair) as user:
        await answer(user, "another")
        pair.database.drop_responses_after = b"INSERT INTO runs"
        sending = asyncio.create_task(answer(user, CHAT, key="the-first"))
        run = await stored.run_with_status(user.name, "running")
        await pair.database.cut()
        await pair.database.restore()
        with pytest.raises((ApiError, ConnectionLost)):
            await sending
        await until(lambda: stored.run_statuses(user.name)[-1] == "interrupted")
        assert names(await user.runs.say(CHAT, "count", key="the-first"))[-1] == "interaction_complete"
        assert [one.id for one in stored.runs(user.name)][1:] == [run.id]
        await model.script(says("One."))
        assert "answer" in await answer(user, CHAT)
