"""Users are served by several backends and MCP servers behind HAProxy, during restarts and attacks, too."""

import asyncio
import random
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager

import pytest

from tests import abuse
from tests.chaos.checks.stored_rows import ENDED, StoredRows
from tests.chaos.client_record import ClientRecord
from tests.chaos.scenarios import simulate_user
from tests.chaos.system import reachable_directory
from tests.chatkit_client import ChatKit
from tests.processes import ServiceProcess, run_service
from tests.runs_client import Runs
from tests.scale.system import ScaledSystem
from tests.scripted_model import ScriptedModel
from tests.support.port_attacks import attack
from tests.waiting import until

pytestmark = pytest.mark.long(seconds=15)

DRAIN_SECONDS = 5.0
USERS = 4
ATTACK_SECONDS = 2.0
END_SECONDS = 60
ENDLESS = {"when": "count", "text": " ".join(map(str, range(500))), "chunk_chars": 4, "token_delay": 0.1}


@pytest.fixture(scope="module")
def model_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    log = tmp_path_factory.mktemp("model") / "log"
    yield from run_service(ServiceProcess("tests.scripted_endpoint", "OFFLINE_PORT", log), "/health")


@pytest.fixture(scope="module")
def scaled(model_service: ServiceProcess) -> Iterator[ScaledSystem]:
    with reachable_directory() as directory:
        scaled = ScaledSystem(
            directory, f"{model_service.url}/v1", backends=2, mcp_servers=2, drain_seconds=DRAIN_SECONDS
        )
        yield scaled
        scaled.stop()


@pytest.fixture
async def model(model_service: ServiceProcess) -> AsyncIterator[ScriptedModel]:
    async with ScriptedModel(model_service.url) as model:
        yield model


@asynccontextmanager
async def simulate_users(system: ScaledSystem, count: int) -> AsyncIterator[ClientRecord]:
    """Lets users add and complete tasks during the block, and each another one afterwards."""
    record, done = ClientRecord(), asyncio.Event()

    async def talk(number: int) -> None:
        async with simulate_user(system.url, record, random.Random(number), number) as new_scenario:
            scenario = new_scenario()
            await scenario.start()
            while not done.is_set():
                await scenario.add_and_complete()
            await scenario.add_and_complete()

    async with asyncio.TaskGroup() as tasks:
        for number in range(count):
            tasks.create_task(talk(number))
        try:
            yield record
        finally:
            done.set()


async def restart(system: ScaledSystem, names: Sequence[str]) -> None:
    """Restarts these services at once; returns when HAProxy sends them requests again."""

    async def restart_one(name: str) -> None:
        service, before = system.services[name], system.proxy.count_up(name)
        assert await asyncio.to_thread(service.end, timeout=END_SECONDS) == 0, name
        service.start()
        await until(lambda: system.proxy.count_up(name) > before)

    await asyncio.gather(*map(restart_one, names))


def count_outcomes(system: ScaledSystem) -> Counter[str]:
    """Counts the runs that have ended by their status."""
    runs = StoredRows(system.cluster.admin_url).runs.values()
    return Counter(run["status"] for run in runs if run["status"] in ENDED)


def _list_services_without(scaled: ScaledSystem, module: str, line: str) -> list[str]:
    """Returns the names of the services of a module whose log does not contain a line."""
    return [name for name, one in scaled.services.items() if one.module == module and line not in one.log_text]


async def test_users_are_served_by_every_process_at_one_address(scaled: ScaledSystem) -> None:
    async with ChatKit(scaled.url) as chat:
        number = 5
        for first in range(number + 1):
            assert (await chat.say(f"add task number {first}")).error is None
        tasks = await chat.http.get("/tasks?view=all", headers={"Origin": scaled.url})
        assert tasks.status_code == 200, "the page's own origin is known, though TLS ends at HAProxy"
        assert len(tasks.json()["tasks"]) == 6
        assert (await chat.http.get("/metrics")).status_code == 404
        # HAProxy leaves out a process that is late to answer its check, until it has answered again.
        async with asyncio.timeout(240):
            while idle := [
                *_list_services_without(scaled, "backend", "run ended"),
                *_list_services_without(scaled, "mcp_server", "tool call"),
            ]:
                number += 1
                assert (await chat.say(f"add task number {number}")).error is None, idle
    services = scaled.services.values()
    assert not [service for service in services if "LISTEN_DATABASE_URL" in service.log_text]


@pytest.mark.extended
@pytest.mark.parametrize("name", abuse.ABUSES)
@pytest.mark.parametrize("attacked", ["backend", "mcp_server"])
async def test_users_are_served_while_the_proxy_is_attacked(scaled: ScaledSystem, attacked: str, name: str) -> None:
    port, tls = (scaled.proxy.port, True) if attacked == "backend" else (scaled.proxy.tools_port, False)
    messages = 0
    async with (
        ChatKit(scaled.url) as chat,
        attack(port, attacked, name, ATTACK_SECONDS, *scaled.services.values(), tls=tls) as attacking,
    ):
        while not messages or not attacking.done():
            assert (await chat.say(f"add milk{time.monotonic_ns()}")).error is None
            messages += 1
    assert attacking.result()["opened"] >= abuse.CONNECTIONS


@pytest.mark.extended
async def test_restart_of_every_service_interrupts_only_endless_answers(
    scaled: ScaledSystem, model: ScriptedModel
) -> None:
    before, answered_before = count_outcomes(scaled), scaled.proxy.statuses
    async with (
        Runs(scaled.services["backend-1"].url) as first,
        Runs(scaled.services["backend-2"].url) as second,
        simulate_users(scaled, USERS) as record,
    ):
        await restart(scaled, ["mcp-1", "backend-1"])
        await model.script(ENDLESS)
        async with second.interact("long", "count") as events:
            run = (await anext(events)).data["interaction_id"]
        reading = asyncio.create_task(first.read("long", run))
        await restart(scaled, ["mcp-2", "backend-2"])
        events_read = await reading
    assert events_read[-1].data["status"] == "FAILED"
    assert StoredRows(scaled.cluster.admin_url).find_problems(record) == []
    ended = count_outcomes(scaled) - before
    assert ended.keys() <= {"completed", "cancelled", "interrupted"}
    assert ended["interrupted"] == 1, ended
    assert max(scaled.proxy.statuses - answered_before) < 500
