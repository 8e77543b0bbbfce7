"""Readers in three processes that leave all the time and go on in another one, and an owner that is killed."""

import asyncio
import itertools
import json
import os
import random
import signal
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.backend.conftest import Rows
from tests.chatkit_client import ChatKit, user_input
from tests.conftest import ROOT
from tests.processes import ServiceProcess
from tests.scripted_model import ScriptedModel
from tests.waiting import until

pytestmark = [pytest.mark.long]

TEXT = " ".join(f"word{number}" for number in range(150))
LEASE = 5.0
Told = list[tuple[int, str]]


class Reader:
    """A process that follows runs."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._process, self._in, self._out = process, process.stdin, process.stdout
        self.ready: asyncio.Future[Told] = asyncio.get_running_loop().create_future()
        self._answers: dict[int, asyncio.Future[Told]] = {-1: self.ready}
        self._numbers = itertools.count()
        self._hearing = asyncio.create_task(self._hear())

    async def read(self, run: str, after: int, most: int) -> Told:
        """The next events of a run, so many or up to its end."""
        n = next(self._numbers)
        answer = self._answers[n] = asyncio.get_running_loop().create_future()
        self._in.write(json.dumps({"n": n, "run": run, "after": after, "most": most}).encode() + b"\n")
        return await asyncio.wait_for(answer, 60)

    async def _hear(self) -> None:
        async for line in self._out:
            answer = json.loads(line)
            self._answers.pop(answer["n"]).set_result([(seq, payload) for seq, payload in answer["told"]])

    async def end(self) -> None:
        self._in.close()
        await self._process.wait()
        await self._hearing


@asynccontextmanager
async def reading(database_url: str) -> AsyncIterator[list[Reader]]:
    command = [sys.executable, "-m", "tests.backend.turn.following.reading"]
    pipes: dict[str, Any] = {"stdin": asyncio.subprocess.PIPE, "stdout": asyncio.subprocess.PIPE, "limit": 2**24}
    environment = os.environ | {"DATABASE_URL": database_url}
    processes = [await asyncio.create_subprocess_exec(*command, cwd=ROOT, env=environment, **pipes) for _ in range(3)]
    readers = [Reader(process) for process in processes]
    try:
        await asyncio.gather(*(reader.ready for reader in readers))
        yield readers
    finally:
        await asyncio.gather(*(reader.end() for reader in readers))


@pytest.fixture
def owners(database_url: str, mcp_url: str, model: ScriptedModel, tmp_path: Path) -> Iterator[list[ServiceProcess]]:
    """Two backends over one database."""
    settings = {"DATABASE_URL": database_url, "MCP_URL": mcp_url, "LLM_PROVIDER": "offline"}
    settings |= {"LLM_BASE_URL": model.openai_base_url, "LEASE_SECONDS": str(LEASE), "HEARTBEAT_SECONDS": "0.5"}
    services = [ServiceProcess("backend", "BACKEND_PORT", tmp_path / f"{n}.log", **settings) for n in range(2)]
    for service in services:
        service.start()
    yield services
    for service in services:
        if service.process is not None and service.process.poll() is None:
            service.end()


async def begin(owner: ServiceProcess) -> str:
    """The id of a run that nobody reads."""
    async with ChatKit(owner.url, detached=True) as page, page.open("threads.create", input=user_input("hi")) as events:
        return (await anext(events))["data"]["interaction_id"]


async def read_in_cuts(chance: random.Random, readers: list[Reader], run: str) -> tuple[Told, int]:
    """All that a run says, read by whichever process, a few events at a time; and how many times."""
    told, cuts = Told(), 0
    while not told or '"Ended"' not in told[-1][1]:
        told += await chance.choice(readers).read(run, told[-1][0] if told else 0, chance.randint(1, 6))
        cuts += 1
    return told, cuts


def text_of(told: Told) -> str:
    return "".join(event["text"] for event in (json.loads(one) for _, one in told) if event["event"] == "Grown")


async def test_who_leaves_often_reads_the_same(
    owners: list[ServiceProcess], database_url: str, model: ScriptedModel, often: int
) -> None:
    seed = random.randrange(2**32)
    chance = random.Random(seed)
    await model.script(*({"text": TEXT, "chunk_chars": 6, "token_delay": 0.04} for _ in range(6)))
    for owner in owners:
        await asyncio.to_thread(owner.wait_until_ready)
    async with reading(database_url) as readers:
        runs = [await begin(owners[n % 2]) for n in range(6)]
        cuts = 0
        while cuts < often:
            read = await asyncio.gather(*(read_in_cuts(chance, readers, run) for run in runs * 2))
            cuts += sum(count for _, count in read)
            for run, (told, _) in zip(runs * 2, read, strict=True):
                assert told == read[runs.index(run)][0], f"seed {seed}: {run}"
                assert [number for number, _ in told] == list(range(1, len(told) + 1)), f"seed {seed}: {run}"
                assert text_of(told) == TEXT, f"seed {seed}: {run}"


async def test_an_owner_that_is_killed_is_told_of_within_its_lease(
    owners: list[ServiceProcess], database_url: str, model: ScriptedModel, rows: Rows
) -> None:
    await model.script({"text": TEXT, "chunk_chars": 6, "token_delay": 0.1})
    for owner in owners:
        await asyncio.to_thread(owner.wait_until_ready)
    async with reading(database_url) as readers:
        run = await begin(owners[0])
        answers = [asyncio.create_task(reader.read(run, 0, 10_000)) for reader in readers]
        await until(lambda: rows("SELECT 1 FROM run_events WHERE seq > 20"))
        owners[0].end(signal.SIGKILL)
        killed = time.monotonic()
        read = await asyncio.gather(*answers)
        assert time.monotonic() - killed < LEASE + 5, "its readers look every second, and wait a moment for the rest"
    assert read[0] == read[1] == read[2]
    assert TEXT.startswith(text_of(read[0]))
    failed, ended = (json.loads(payload) for _, payload in read[0][-2:])
    assert (failed["event"], ended) == ("Failed", {"event": "Ended", "outcome": "interrupted"})
