"""16 conversations go on while each part is restarted in turn: nothing is lost, and all that is told of it agrees."""

import asyncio
import json
import random
import time
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx2
import psycopg
import pytest

from tests.chaos.checks.locks import Locks
from tests.chaos.checks.stored import Stored
from tests.chaos.model import serve_model
from tests.chaos.people import person
from tests.chaos.plays import Plays
from tests.chaos.record import Record
from tests.chaos.system import System, reachable_directory
from tests.processes import ServiceProcess
from tests.waiting import until

CONVERSATIONS = 16
RUNNING = 4  # answers, at least, whenever a part is restarted
TRUTH_SECONDS = 2.0
RESTARTED = "-- the backend is started again --\n"


@pytest.mark.long
@pytest.mark.alone
async def test_each_part_is_restarted_while_people_talk(tmp_path: Path) -> None:
    record, done = Record(), asyncio.Event()
    with reachable_directory() as directory:
        async with serve_model() as model:
            system = System(directory, model.url)
            try:
                talking = [asyncio.create_task(talk(system, record, number, done)) for number in range(CONVERSATIONS)]
                await asyncio.sleep(1)
                moments: list[datetime] = []
                for restart in (restart_tools, restart_database, restart_backend):
                    await until(lambda: running(system) >= RUNNING, seconds=20)
                    moments.append(datetime.now(UTC))
                    await restart(system)
                await asyncio.sleep(1)
                done.set()
                await asyncio.gather(*talking)
                assert list(Stored(system.cluster.admin_url).problems(record)) == []
                assert model.unpaired == []
                assert all(ran_on(system, moment) for moment in moments), "each part was restarted amid answers"
                await check_what_is_told(system)
            finally:
                done.set()
                system.stop()
    assert list(record.wishes.values()).count("completed") >= CONVERSATIONS


async def talk(system: System, record: Record, number: int, done: asyncio.Event) -> None:
    chance, locks = random.Random(number), Locks(system.cluster.admin_url, record)
    async with person(system.url, record, locks, chance, number, Plays) as begin:
        plays = await begin()
        await plays.plain()
        while not done.is_set():
            await plays.plain()


def running(system: System) -> int:
    """How many answers run."""
    with psycopg.connect(system.cluster.admin_url) as database:
        return len(database.execute("SELECT 1 FROM runs WHERE status = 'running'").fetchall())


def ran_on(system: System, moment: datetime) -> bool:
    """Whether an answer had begun before that moment and ended after it."""
    spanning = "SELECT 1 FROM runs WHERE started_at < %(moment)s AND ended_at > %(moment)s LIMIT 1"
    with psycopg.connect(system.cluster.admin_url) as database:
        return bool(database.execute(spanning, {"moment": moment}).fetchall())


async def restart_tools(system: System) -> None:
    await asyncio.to_thread(system.mcp.end)
    await tells(system.backend, 503)
    system.mcp.start()
    await asyncio.to_thread(system.mcp.wait_until_ready)
    await tells(system.backend, 200)


async def restart_database(system: System) -> None:
    await asyncio.to_thread(system.cluster.stop)
    await asyncio.gather(tells(system.backend, 503), tells(system.mcp, 503))
    await asyncio.to_thread(system.start, "postgres")
    await asyncio.gather(tells(system.backend, 200), tells(system.mcp, 200))


async def restart_backend(system: System) -> None:
    assert await asyncio.to_thread(system.backend.end) == 0
    system.backend.mark_log(RESTARTED)
    system.backend.start()
    await asyncio.to_thread(system.backend.wait_until_ready)
    await tells(system.backend, 200)


async def tells(service: ServiceProcess, status: int) -> None:
    """`/ready` says so within the time it may take."""
    deadline = time.monotonic() + TRUTH_SECONDS
    async with httpx2.AsyncClient(base_url=service.url, trust_env=False, verify=False, timeout=5) as http:
        while (answer := (await http.get("/ready")).status_code) != status:
            assert time.monotonic() < deadline, f"{service.module} still says {answer}"
            await asyncio.sleep(0.05)
    assert time.monotonic() < deadline + 0.1


async def check_what_is_told(system: System) -> None:
    """One line for each run with its outcome, and as many in the metrics of the last process as it has ended."""
    with psycopg.connect(system.cluster.admin_url) as database:
        runs = dict(database.execute("SELECT id, outcome FROM runs").fetchall())
    before, _, since = system.backend.log_text.partition(RESTARTED)
    ended = turns_ended(before) + turns_ended(since)
    assert Counter(line["run"] for line in ended) == Counter(runs.keys()), "one line for each turn"
    assert {line["run"]: line["outcome"] for line in ended} == runs
    async with httpx2.AsyncClient(base_url=system.backend.url, trust_env=False, verify=False) as http:
        metrics = (await http.get("/metrics")).text
    assert counted(metrics) == Counter(line["outcome"] for line in turns_ended(since))


def turns_ended(log: str) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in log.splitlines() if line.startswith("{")]
    return [line for line in lines if line["message"] == "turn ended"]


def counted(metrics: str) -> Counter[str]:
    """Turns by outcome."""
    found = Counter[str]()
    for line in metrics.splitlines():
        if line.startswith("todo_turns_total{"):
            outcome, _, value = line.removeprefix('todo_turns_total{outcome="').partition('"} ')
            found[outcome] += int(float(value))
    return +found
