"""Readers over HTTP that are cut off all the time and go on in another process, and an owner that is killed."""

import asyncio
import itertools
import json
import logging
import random
import signal
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, suppress

import httpx2
import pytest

from client.runs import Event
from client.sse import NamedFrames
from tests.backend.consent import call, calls, deleting
from tests.processes import ServiceProcess
from tests.runs_client import Runs, check, names, plain, text_of
from tests.scripted_model import ScriptedModel
from tests.waiting import until

logger = logging.getLogger(__name__)
pytestmark = pytest.mark.long(seconds=10)

TEXT = " ".join(f"word{number}" for number in range(150))
SLOWLY = {"text": TEXT, "chunk_chars": 6, "token_delay": 0.04}
ADDING = calls(call("add_task", title="milk"), text="I add it.")
ASKING = calls(deleting(1), call("list_tasks"), deleting(2), deleting(3), text="I ask.")
LEASE = 5.0
BYTES = (4, 11.5)  # before a connection is cut, as powers of two: an event has 80, an answer more than a thousand
CI = 60  # cuts
READERS = 4  # of each interaction


@pytest.fixture
async def model(model_service: ServiceProcess) -> AsyncIterator[ScriptedModel]:
    model = ScriptedModel(model_service.url)
    await model.reset()
    yield model
    await model.aclose()


@pytest.fixture(scope="module")
def kept(
    session_database_url: str, mcp_url: str, model_service: ServiceProcess, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[list[ServiceProcess]]:
    """Three processes over one database, each on a port of its own, whether they run or not."""
    settings = {"DATABASE_URL": session_database_url, "MCP_URL": mcp_url, "APPROVALS": "delete_task"}
    settings |= {"LLM_PROVIDER": "offline", "LLM_BASE_URL": f"{model_service.url}/v1"}
    settings |= {"LEASE_SECONDS": str(LEASE), "HEARTBEAT_SECONDS": "0.5"}
    logs = tmp_path_factory.mktemp("backends")
    services = [ServiceProcess("backend", "BACKEND_PORT", logs / f"{n}.log", **settings) for n in range(3)]
    yield services
    for service in services:
        if service.is_running:
            service.end()


@pytest.fixture
async def backends(kept: list[ServiceProcess], database_url: str) -> list[ServiceProcess]:
    """All three, ready; one that a test has killed is started again."""
    for service in kept:
        if not service.is_running:
            service.start()
    for service in kept:
        await asyncio.to_thread(service.wait_until_ready)
    return kept


@pytest.fixture
async def processes(backends: list[ServiceProcess]) -> AsyncIterator[list[Runs]]:
    """The run API of each."""
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(Runs(backend.url)) for backend in backends]


async def begin(process: Runs, chat: str, said: str) -> str:
    """The id of an interaction that nobody reads."""
    async with process.interact(chat, said) as events:
        return (await anext(events)).data["interaction_id"]


async def read_until_cut(process: Runs, path: str, told: list[Event], most: int) -> None:
    """Read on behind what was told, until so many bytes have come, wherever that is, or the end."""
    headers = {"Last-Event-ID": str(told[-1].number)} if told else {}
    frames = NamedFrames()
    async with process.http.stream("GET", path, headers=headers) as response:
        assert response.status_code == 200
        async for piece in response.aiter_raw():
            come = frames.feed(piece[:most])
            told += [check(Event(int(event.id), event.name, json.loads(event.data))) for event in come]
            most -= len(piece)
            if most <= 0:
                return


class Reader:
    """One that loses its connection, and goes on in another process."""

    def __init__(self, chance: random.Random, processes: Sequence[Runs], chat: str, run: str) -> None:
        self.told: list[Event] = []
        self.cuts = 0
        self._chance = chance
        self._processes = processes
        self._path = f"/chats/{chat}/interactions/{run}/events"

    @property
    def at_the_end(self) -> bool:
        return bool(self.told) and self.told[-1].name == "interaction_complete"

    async def read(self) -> None:
        process = self._chance.choice(self._processes)
        while not self.at_the_end:
            with suppress(httpx2.TransportError):  # a process may be killed
                await read_until_cut(process, self._path, self.told, int(2 ** self._chance.uniform(*BYTES)))
            self.cuts += not self.at_the_end
            process = self._chance.choice([one for one in self._processes if one is not process] or [process])


async def decide(chance: random.Random, processes: Sequence[Runs], chat: str, run: str) -> list[tuple[str, bool]]:
    """Answer what is asked, one after the other, each in whichever process; returns what was answered."""
    asked = list[str]()
    while len(asked) < 3:
        await asyncio.sleep(0.05)
        asked = [one["approval_id"] for one in (await processes[0].get_interaction(chat, run))["approvals"]]
    answers = [(one, chance.random() < 0.5) for one in chance.sample(asked, 3)]
    for approval, approved in answers:
        await asyncio.sleep(chance.random() / 2)
        await chance.choice(processes).approve(chat, run, approval, approved=approved)
    return answers


async def a_round(
    chance: random.Random, processes: Sequence[Runs], model: ScriptedModel, number: int
) -> tuple[int, int]:
    """Three interactions with several readers each: one to its end, one that asks, one that is cancelled.

    Returns how often the readers were cut off, and how many events they were told.
    """
    telling, asking, cancelled = chats = [f"{kind}-{number}" for kind in ("telling", "asking", "cancelled")]
    steps = {telling: [ADDING, SLOWLY], asking: [ASKING, SLOWLY], cancelled: [SLOWLY]}
    await model.script(*({**step, "when": chat} for chat in chats for step in steps[chat]))
    runs = {chat: await begin(chance.choice(processes), chat, f"go on, {chat}") for chat in chats}
    readers = {chat: [Reader(chance, processes, chat, run) for _ in range(READERS)] for chat, run in runs.items()}
    deciding = asyncio.create_task(decide(chance, processes, asking, runs[asking]))
    reading = asyncio.gather(*(reader.read() for some in readers.values() for reader in some))
    grown = chance.randint(1, 300)
    await until(lambda: len(text_of(readers[cancelled][0].told)) > grown)
    await chance.choice(processes).cancel(cancelled, runs[cancelled])
    await asyncio.wait_for(reading, 120)

    told = {chat: some[0].told for chat, some in readers.items()}
    for chat, run in runs.items():
        assert all(reader.told == told[chat] for reader in readers[chat])
        for process in processes:
            assert await process.read(chat, run) == told[chat]
            assert (await process.get_interaction(chat, run))["agent_events"] == plain(told[chat])
        numbers = [event.number or 0 for event in told[chat]]
        assert numbers == sorted(set(numbers))
    assert text_of(told[telling]) == ADDING["text"] + TEXT
    assert text_of(told[asking]) == ASKING["text"] + TEXT
    assert TEXT.startswith(text_of(told[cancelled]))
    assert names(told[cancelled])[-2:] == ["cancelled", "interaction_complete"]
    words = {"approved": True, "rejected": False}
    answers = [(one.data["approval_id"], words[one.name]) for one in told[asking] if one.name in words]
    assert answers == await deciding
    all_of = [reader for some in readers.values() for reader in some]
    return sum(reader.cuts for reader in all_of), sum(len(reader.told) for reader in all_of)


async def test_who_is_cut_off_anywhere_is_told_the_same_by_any_process(
    processes: list[Runs], model: ScriptedModel, often: int
) -> None:
    seed = random.randrange(2**32)
    chance = random.Random(seed)
    wanted = often if often >= 1_000 else CI
    cuts = events = 0
    began = time.monotonic()
    try:
        for number in itertools.count():
            cut, told = await a_round(chance, processes, model, number)
            cuts, events = cuts + cut, events + told
            if cuts >= wanted:
                break
    finally:
        seconds = time.monotonic() - began
        logger.info("seed %s: %s cuts, %s events told, %.0f seconds", seed, cuts, events, seconds)


async def test_an_owner_that_is_killed_is_told_of_within_its_lease(
    backends: list[ServiceProcess], processes: list[Runs], model: ScriptedModel
) -> None:
    seed = random.randrange(2**32)
    chance = random.Random(seed)
    await model.script({**SLOWLY, "token_delay": 0.1})
    run = await begin(processes[0], "telling", "go on")
    others = [Reader(chance, [process], "telling", run) for process in processes[1:]]
    readers = [*others, Reader(chance, processes, "telling", run)]
    ended: list[float] = []

    async def read(reader: Reader) -> None:
        await reader.read()
        ended.append(time.monotonic())

    reading = asyncio.gather(*(read(reader) for reader in readers))
    await until(lambda: all(len(text_of(reader.told)) > 100 for reader in readers))
    backends[0].end(signal.SIGKILL)
    killed = time.monotonic()
    await asyncio.wait_for(reading, 60)
    logger.info("seed %s: told after %s seconds", seed, [round(moment - killed, 2) for moment in ended])
    assert max(ended) - killed < LEASE + 1, "the lease runs from its last beat; the rest is a busy machine"
    told = readers[0].told
    assert all(reader.told == told for reader in readers), f"seed {seed}"
    assert TEXT.startswith(text_of(told))
    assert names(told)[-2:] == ["error", "interaction_complete"]
    assert told[-1].data["status"] == "FAILED"
    assert told[-1].data["reason"]
    for process in processes[1:]:
        assert await process.read("telling", run) == told
