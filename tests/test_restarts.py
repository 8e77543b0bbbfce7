"""Each service is restarted while users talk: nothing is lost, and logs and metrics agree with what is stored."""

import asyncio
import json
import random
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx2
import psycopg
import pytest

from tests.chaos.checks.stored_rows import StoredRows
from tests.chaos.client_record import ClientRecord
from tests.chaos.model import serve_model
from tests.chaos.scenarios import simulate_user
from tests.chaos.system import System, reachable_directory
from tests.processes import ServiceProcess
from tests.waiting import until

CONVERSATIONS = 8
MIN_RUNNING = 3  # runs when a service is restarted
RESTART_LINE = "-- restart of the backend --\n"


@pytest.mark.long(seconds=30)
async def test_restart_of_each_service_under_load(tmp_path: Path) -> None:
    record, done = ClientRecord(), asyncio.Event()
    with reachable_directory() as directory:
        async with serve_model() as model:
            system = System(directory, model.url)
            try:
                talking = [asyncio.create_task(talk(system, record, number, done)) for number in range(CONVERSATIONS)]
                await asyncio.sleep(1)
                moments: list[datetime] = []
                for restart in (restart_tools, restart_database, restart_backend):
                    await until(lambda: count_running(system) >= MIN_RUNNING, seconds=60)
                    moments.append(datetime.now(UTC))
                    await restart(system)
                await asyncio.sleep(1)
                done.set()
                await asyncio.gather(*talking)
                assert StoredRows(system.cluster.admin_url).find_problems(record) == []
                assert model.unpaired == []
                assert all(spans_restart(system, moment) for moment in moments), (
                    "each part was restarted during answers"
                )
                await check_logs_and_metrics(system)
            finally:
                done.set()
                system.stop()
    assert list(record.expected_tasks.values()).count("completed") >= CONVERSATIONS


async def talk(system: System, record: ClientRecord, number: int, done: asyncio.Event) -> None:
    async with simulate_user(system.url, record, random.Random(number), number) as start_conversation:
        scenarios = await start_conversation()
        await scenarios.add_and_complete()
        while not done.is_set():
            await scenarios.add_and_complete()


def count_running(system: System) -> int:
    with psycopg.connect(system.cluster.admin_url) as database:
        return len(database.execute("SELECT 1 FROM runs WHERE status = 'running'").fetchall())


def spans_restart(system: System, moment: datetime) -> bool:
    """Returns whether any run started before this moment and ended after it."""
    spanning = "SELECT 1 FROM runs WHERE created_at < %(moment)s AND ended_at > %(moment)s LIMIT 1"
    with psycopg.connect(system.cluster.admin_url) as database:
        return bool(database.execute(spanning, {"moment": moment}).fetchall())


async def restart_tools(system: System) -> None:
    await asyncio.to_thread(system.mcp.end)
    await wait_for_readiness(system.backend, 503)
    system.mcp.start()
    await asyncio.to_thread(system.mcp.wait_until_ready)
    await wait_for_readiness(system.backend, 200)


async def restart_database(system: System) -> None:
    await asyncio.to_thread(system.cluster.stop)
    await asyncio.gather(wait_for_readiness(system.backend, 503), wait_for_readiness(system.mcp, 503))
    await asyncio.to_thread(system.start, "postgres")
    await asyncio.gather(wait_for_readiness(system.backend, 200), wait_for_readiness(system.mcp, 200))


async def restart_backend(system: System) -> None:
    assert await asyncio.to_thread(system.backend.end) == 0
    system.backend.mark_log(RESTART_LINE)
    system.backend.start()
    await asyncio.to_thread(system.backend.wait_until_ready)
    await wait_for_readiness(system.backend, 200)


async def wait_for_readiness(service: ServiceProcess, status: int) -> None:
    async with httpx2.AsyncClient(base_url=service.url, trust_env=False, verify=False, timeout=30) as http:
        async with asyncio.timeout(60):
            while (await http.get("/ready")).status_code != status:
                await asyncio.sleep(0.05)


async def check_logs_and_metrics(system: System) -> None:
    """The log has a line with the outcome of each run, and the metrics of the last process count its runs."""
    with psycopg.connect(system.cluster.admin_url) as database:
        runs = dict(database.execute("SELECT id, status FROM runs").fetchall())
    before, _, since = system.backend.log_text.partition(RESTART_LINE)
    ended = find_end_lines(before) + find_end_lines(since)
    assert Counter(line["run"] for line in ended) == Counter(runs.keys()), "one line for each run"
    assert {line["run"]: line["outcome"] for line in ended} == runs
    async with httpx2.AsyncClient(base_url=system.backend.url, trust_env=False, verify=False) as http:
        metrics = (await http.get("/metrics")).text
    assert read_outcomes(metrics) == Counter(line["outcome"] for line in find_end_lines(since))


def find_end_lines(log: str) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in log.splitlines() if line.startswith("{")]
    return [line for line in lines if line["message"] == "turn ended"]


def read_outcomes(metrics: str) -> Counter[str]:
    """Returns the number of ended runs by outcome."""
    counts = Counter[str]()
    for line in metrics.splitlines():
        if line.startswith("todo_turns_total{"):
            outcome, _, value = line.removeprefix('todo_turns_total{outcome="').partition('"} ')
            counts[outcome] += int(float(value))
    return +counts
