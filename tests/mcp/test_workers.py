"""Four processes behind one port: what holds with one holds with four."""

import asyncio
import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import httpx2
import pytest

from tests.mcp.servers import AUDIENCE, COMMON
from tests.mcp.wire import call, result, send
from tests.processes import ServiceProcess
from tests.serving import http_client
from tests.support.stored import Stored
from tests.tokens import mint_mcp_token
from tests.waiting import until

pytestmark = pytest.mark.long

AT_ONCE = 24  # connections, which the kernel gives to whichever process is free


@pytest.fixture(scope="module")
def workers(session_database_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    log = tmp_path_factory.mktemp("workers") / "log"
    environment = {"DATABASE_URL": session_database_url, "MCP_WORKERS": "4", **COMMON}
    service = ServiceProcess("mcp_server", "MCP_PORT", log, **environment)
    service.start()
    service.wait_until_all_serve(4)
    yield service
    assert service.end() == 0
    assert "Traceback" not in service.log_text, service.log_text


def adding(title: str, user: str) -> httpx2.Request:
    return call(
        "add_task", {"title": title}, meta={"todo/idempotency_key": title}, token=mint_mcp_token(user, AUDIENCE)
    )


async def test_a_key_sent_to_all_processes_at_once_acts_once(
    workers: ServiceProcess, stored: Stored, user: str
) -> None:
    async def add(title: str) -> dict[str, object]:
        async with http_client(workers.url) as http:
            return result(await send(http, adding(title, user)))

    titles = [f"title {number}" for number in range(2)]
    for title in titles:
        answers = await asyncio.gather(*(add(title) for _ in range(AT_ONCE)))
        assert all(answer == answers[0] for answer in answers)
    assert stored.titles(user) == titles
    assert len(stored.task_calls(user)) == 2


async def test_calls_and_metrics_go_on_while_processes_are_killed(
    workers: ServiceProcess, stored: Stored, user: str
) -> None:
    """As the backend does, a call that got no answer is sent again with its key."""

    async def add(title: str, user: str) -> None:
        async with asyncio.timeout(60):
            while True:
                with suppress(httpx2.ReadError, httpx2.RemoteProtocolError):  # never refused: the port is served
                    async with http_client(workers.url) as http:
                        result(await send(http, adding(title, user)))
                    return

    async def add_many(user: str) -> None:
        for number in range(20):
            await add(f"{number}", user)

    async def counted() -> float:
        async with http_client(workers.url) as http:
            metrics = (await http.get("/metrics")).text
        lines = [line for line in metrics.splitlines() if line.startswith(COUNT)]
        return float(lines[0].split()[-1]) if lines else 0  # before the first call there is no line

    before = await counted()
    users = [f"{user}-{number}" for number in range(4)]
    adding_all = [asyncio.create_task(add_many(each)) for each in users]
    for number in range(4):
        await until(lambda n=number: len(stored.tasks(users[0])) > 4 * n)
        os.kill(workers.workers[0], signal.SIGKILL)
    await asyncio.gather(*adding_all)
    for each in users:
        assert sorted(stored.titles(each), key=int) == [f"{number}" for number in range(20)]
    assert await counted() >= before + 60, "calls of processes that are dead are still counted"


async def test_a_worker_that_dies_before_it_serves_is_replaced_at_once(
    session_database_url: str, tmp_path: Path
) -> None:
    environment = {"DATABASE_URL": session_database_url, "MCP_WORKERS": "2", **COMMON}
    service = ServiceProcess("mcp_server", "MCP_PORT", tmp_path / "log", **environment)
    service.start()
    await until(lambda: len(service.workers) == 2)
    worker = service.workers[0]
    os.kill(worker, signal.SIGSTOP)
    await asyncio.sleep(1.5)  # the supervisor waits for the first answer of the worker
    os.kill(worker, signal.SIGKILL)
    await asyncio.to_thread(service.wait_until_all_serve, 2)
    assert service.end() == 0


async def test_workers_end_with_their_supervisor(session_database_url: str, tmp_path: Path) -> None:
    """Else they would go on, and the service could not be started again on its port."""
    environment = {"DATABASE_URL": session_database_url, "MCP_WORKERS": "2", **COMMON}
    service = ServiceProcess("mcp_server", "MCP_PORT", tmp_path / "log", **environment)
    service.start()
    await asyncio.to_thread(service.wait_until_all_serve, 2)
    workers = service.workers
    service.end(signal.SIGKILL)
    await until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in workers))
    service.start()
    await asyncio.to_thread(service.wait_until_ready)
    assert service.end() == 0


COUNT = 'todo_tool_call_seconds_count{outcome="ok",tool="add_task"}'
