"""Four processes behind one port: what holds with one holds with four."""

import asyncio
import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import httpx2
import pytest

from tests.mcp_server.conftest import Rows
from tests.mcp_server.wire import call, result, send
from tests.processes import ServiceProcess

pytestmark = pytest.mark.long

AT_ONCE = 24  # connections, which the kernel gives to whichever process is free


@pytest.fixture
def server(database_url: str, tmp_path: Path) -> Iterator[ServiceProcess]:
    service = ServiceProcess("mcp_server", "MCP_PORT", tmp_path / "log", DATABASE_URL=database_url, MCP_WORKERS="4")
    service.start()
    service.wait_until_all_serve(4)
    yield service
    assert service.end() == 0
    assert "Traceback" not in service.log_text, service.log_text


def client(server: ServiceProcess) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(base_url=server.url, verify=False, trust_env=False, timeout=20)


async def test_a_key_sent_to_all_processes_at_once_acts_once(server: ServiceProcess, rows: Rows) -> None:
    async def add(number: int) -> dict[str, object]:
        made = call("add_task", {"title": f"wish {number}"}, meta={"todo/idempotency_key": f"key-{number}"})
        async with client(server) as http:
            return result(await send(http, made))

    for number in range(5):
        answers = await asyncio.gather(*(add(number) for _ in range(AT_ONCE)))
        assert all(answer == answers[0] for answer in answers)
    assert [task["title"] for task in rows.tasks()] == [f"wish {number}" for number in range(5)]
    assert len(rows.changes()) == 5


async def test_a_cursor_of_one_process_is_read_by_any_other(server: ServiceProcess) -> None:
    async with client(server) as http:
        for number in range(30):
            result(await send(http, call("add_task", {"title": f"wish {number}"})))
    titles, cursor = [], None
    while cursor is not None or not titles:
        async with client(server) as http:
            arguments = {"limit": 2} | ({"cursor": cursor} if cursor else {})
            page = result(await send(http, call("list_tasks", arguments)))
        titles += [task["title"] for task in page["tasks"]]
        cursor = page["next_cursor"]
    assert titles == [f"wish {number}" for number in range(30)]


async def test_calls_go_on_while_processes_are_killed(server: ServiceProcess, rows: Rows) -> None:
    """As the backend does, a call that got no answer is sent again with its key."""

    async def add(number: int) -> None:
        made = call("add_task", {"title": f"wish {number}"}, meta={"todo/idempotency_key": f"key-{number}"})
        async with asyncio.timeout(20):
            while True:
                with suppress(httpx2.ReadError, httpx2.RemoteProtocolError):  # never refused: the port is served
                    async with client(server) as http:
                        result(await send(http, made))
                    return

    async def converse(first: int) -> None:
        for number in range(first, first + 20):
            await add(number)

    talking = [asyncio.create_task(converse(100 * person)) for person in range(4)]
    for _ in range(4):
        await asyncio.sleep(0.2)
        os.kill(server.workers[0], signal.SIGKILL)
    await asyncio.gather(*talking)
    titles = [task["title"] for task in rows.tasks()]
    assert len(titles) == len(set(titles)) == 80
