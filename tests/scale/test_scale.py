"""The set-up of docs/scale.md: what one process began others go on with, and a restart of all of them loses nothing."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack

import pytest

from backend.conversation.runs.abandoned import CUT
from client.runs import Event
from tests.backend.slow_turns import SLOW
from tests.chaos.checks.stored import Stored
from tests.chaos.plays import Plays
from tests.chaos.system import reachable_directory
from tests.chatkit_client import ChatKit
from tests.processes import ServiceProcess, running
from tests.runs_client import Runs, names
from tests.scale.rolling import outcomes, people_talk, restart
from tests.scale.system import Scaled
from tests.scripted_model import ScriptedModel

pytestmark = [pytest.mark.long, pytest.mark.alone]

DRAIN_SECONDS = 5.0
PEOPLE = 4
ENDLESS = {"when": "count", "text": "word " * 400, "chunk_chars": 4, "token_delay": 0.1}


@pytest.fixture(scope="module")
def model_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    log = tmp_path_factory.mktemp("model") / "log"
    yield from running(ServiceProcess("tests.scripted_endpoint", "OFFLINE_PORT", log), "/health")


@pytest.fixture(scope="module")
def scaled(model_service: ServiceProcess) -> Iterator[Scaled]:
    with reachable_directory() as directory:
        scaled = Scaled(directory, f"{model_service.url}/v1", drain_seconds=DRAIN_SECONDS)
        yield scaled
        scaled.stop()


@pytest.fixture
async def model(model_service: ServiceProcess) -> AsyncIterator[ScriptedModel]:
    model = ScriptedModel(model_service.url)
    await model.reset()
    yield model
    await model.aclose()


@pytest.fixture
async def backends(scaled: Scaled) -> AsyncIterator[list[Runs]]:
    """The run API of each, past HAProxy."""
    async with AsyncExitStack() as stack:
        services = [service for name, service in scaled.services.items() if name.startswith("backend")]
        yield [await stack.enter_async_context(Runs(service.url)) for service in services]


async def begin(backend: Runs, chat: str, text: str) -> str:
    """The id of an interaction that nobody reads."""
    async with backend.interact(chat, text) as events:
        return (await anext(events)).data["interaction_id"]


async def read_to(events: AsyncIterator[Event], name: str) -> list[Event]:
    """The events as far as the first of this name."""
    read: list[Event] = []
    async for event in events:
        read.append(event)
        if event.name == name:
            return read
    raise AssertionError(f"no {name} among {read}")


def answered(events: list[Event]) -> str:
    return "".join(event.data["content"] for event in events if event.name == "answer")


async def test_what_one_backend_began_the_others_go_on_with(
    scaled: Scaled, backends: list[Runs], model: ScriptedModel
) -> None:
    first, second, third = backends
    assert "tool_result" in names(await first.say("list", "add milk"))
    async with second.interact("list", "delete milk") as events:
        run = (await anext(events)).data["interaction_id"]
        asked = await read_to(events, "approval_required")
    await third.approve("list", run, asked[-1].data["approval_id"], approved=True)
    ended = await first.read("list", run)
    assert names(ended)[-1] == "interaction_complete"
    assert [event.data["tool_name"] for event in ended if event.name == "tool_result"][-1] == "delete_task"

    await model.script({**SLOW, "when": "count"})
    run = await begin(first, "counting", "count")
    async with second.events("counting", run) as events:
        read = await read_to(events, "answer_delta")
    read += await third.read("counting", run, after=read[-1].number or 0)
    assert answered(read) == SLOW["text"]

    await model.script(ENDLESS)
    run = await begin(first, "counting", "count on")
    await second.cancel("counting", run)
    ended = await third.read("counting", run)
    assert ended[-1].data["status"] == "CANCELLED"


async def test_people_are_served_by_all_of_them_at_one_address(scaled: Scaled) -> None:
    async with ChatKit(scaled.url) as chat:
        for number in range(6):
            assert (await chat.say(f"add task number {number}")).error is None
        own = await chat.http.get("/tasks?view=all", headers={"Origin": scaled.url})
        assert own.status_code == 200, "known as its own page's, though TLS ends at HAProxy"
        assert len(own.json()["tasks"]) == 6
        assert (await chat.http.get("/metrics")).status_code == 404
    services = scaled.services.values()
    assert all("turn ended" in service.log_text for service in services if service.module == "backend")
    assert all("tool call" in service.log_text for service in services if service.module == "mcp_server")
    assert not [service for service in services if "LISTEN_DATABASE_URL" in service.log_text]


async def test_a_restart_of_all_ends_no_answer_that_could_end_by_itself(
    scaled: Scaled, backends: list[Runs], model: ScriptedModel
) -> None:
    """And one that could not is told of."""
    before, answered_before = outcomes(scaled), scaled.proxy.statuses
    async with people_talk(scaled, PEOPLE, Plays.plain) as record:
        await restart(scaled, ["mcp-1", "backend-1"])
        await model.script(ENDLESS)
        run = await begin(backends[2], "long", "count")
        reading = asyncio.create_task(backends[0].read("long", run))
        await restart(scaled, ["mcp-2", "backend-2", "backend-3"])
        told = await reading
    assert told[-1].data["status"] == "FAILED"
    assert CUT in str(await backends[1].get_interaction("long", run))
    assert list(Stored(scaled.cluster.admin_url).problems(record)) == []
    ended = outcomes(scaled) - before
    assert ended.keys() <= {"completed", "cancelled", "interrupted"}
    assert ended["interrupted"] == 1, ended
    assert max(scaled.proxy.statuses - answered_before) < 500
