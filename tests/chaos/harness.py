"""People at work while everything is killed, and then all that is checked."""

import asyncio
import random
import time
from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

from tests.chaos.agents.at_work import AgentsAtWork
from tests.chaos.agents.plays import AgentPlays
from tests.chaos.checks import told
from tests.chaos.checks.stored import Stored
from tests.chaos.kills import Kills
from tests.chaos.model import LookedAt, serve_model
from tests.chaos.people import person
from tests.chaos.plays import Plays
from tests.chaos.record import Record
from tests.chaos.system import Killable, System, reachable_directory
from tests.chatkit_client import ChatKit
from tests.scale.system import Scaled
from todo_client.runs import Runs

PEOPLE = 8
PEOPLE_WITH_AGENTS = 4  # of which each may have a command that runs
_PLAYS = (2, 6)  # in one conversation
_ENDED_SECONDS = 25  # a process takes another one for dead when it has been there for 10 s itself


class Harness:
    """All of it, with one seed."""

    def __init__(
        self, system: Killable, model: LookedAt, kills: Kills, seed: str, agents: AgentsAtWork | None = None
    ) -> None:
        self._system = system
        self._model = model
        self._kills = kills
        self._seed = seed
        self._agents = agents
        self.record = Record()

    async def run(self) -> str:
        """Raises AssertionError when anything was lost, mixed or repeated; returns a line of figures."""
        began = time.monotonic()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._kills.run())
            for number in range(PEOPLE_WITH_AGENTS if self._agents else PEOPLE):
                tasks.create_task(self._person(number))
        took = time.monotonic() - began
        free = await self._until_free()
        stored = Stored(self._system.cluster.admin_url)
        async with ChatKit(self._system.url) as chat, Runs(self._system.url) as runs:
            problems = await self._agents.problems(self._system, chat, self.record) if self._agents else []
            problems += [*stored.problems(self.record), *await told.problems(runs, chat, self.record, stored)]
        problems += [f"a request is not paired: {messages}" for messages in self._model.unpaired]
        assert not problems, "\n".join(problems)
        return self._figures(stored, took, free)

    async def _person(self, number: int) -> None:
        """One conversation after the other, as long as there are kills."""
        chance = random.Random(f"{self._seed} person {number}")
        play = AgentPlays if self._agents else Plays
        async with person(self._system.url, self.record, chance, number, play) as begin:
            while not self._kills.over:
                plays = await begin()
                for _ in range(chance.randint(*_PLAYS)):
                    if self._kills.over:
                        break
                    self.record.done[await plays.some()] += 1

    async def _until_free(self) -> float:
        """Seconds until no run is running any more, once nothing is killed."""
        began = time.monotonic()
        while any(run["status"] == "running" for run in Stored(self._system.cluster.admin_url).runs.values()):
            assert time.monotonic() - began < _ENDED_SECONDS, "a conversation stays locked"
            await asyncio.sleep(0.2)
        return time.monotonic() - began

    def _figures(self, stored: Stored, took: float, free: float) -> str:
        outcomes = Counter(run["status"] for run in stored.runs.values())
        decided = Counter(self.record.decisions.values())
        told = len(self.record.messages) + len(self.record.interactions)
        return (
            f"seed {self._seed}: {self._kills.of.total()} kills in {took:.0f} s ({_counted(self._kills.of)}); "
            f"plays: {_counted(self.record.done)}; {len(stored.runs)} runs ({_counted(outcomes)}); "
            f"kept: {told} messages, {len(self.record.inputs)} inputs, {decided[True]} approvals, "
            f"{decided[False]} refusals, {len(self.record.answers)} answers, "
            f"{len(self.record.wishes)} tasks as they must be; {len(stored.calls)} calls made once; "
            f"{self._model.requests} requests paired; all free {free:.1f} s after the last kill"
            f"{self._agents.figures if self._agents else ''}"
        )


async def run(
    kills: int,
    seed: int,
    *,
    workers: int = 1,
    agents: bool = False,
    scaled: bool = False,
    directory: Path | None = None,
    told: Callable[[int], None] = lambda _: None,
) -> str:
    """Raises AssertionError, which names the seed; `directory` keeps what is stored and logged.

    With `agents` people let these work, and the workspace is killed, too. `scaled` is several of each service, HAProxy
    and PgBouncer, each of which is killed.
    """
    with nullcontext(directory) if directory else reachable_directory() as place:
        at_work = AgentsAtWork(place, asks=random.Random(f"{seed} asks").random() < 0.5) if agents else None
        async with serve_model(at_work and at_work.script) as model:
            given = {"workspace": at_work.workspace, "asked_first": at_work.asked_first} if at_work else {}
            system: Killable = Scaled(place, model.url) if scaled else System(place, model.url, workers, **given)
            counted = at_work.script if at_work else model
            killing = Kills(system, kills, random.Random(f"{seed} kills"), lambda: counted.requests, told)
            try:
                return await Harness(system, model, killing, str(seed), at_work).run()
            except* Exception as failed:
                raise AssertionError(f"with the seed {seed} and {workers} workers: {_sentences(failed)}") from failed
            finally:
                system.stop()


def _counted(counter: Counter[str]) -> str:
    return ", ".join(f"{name} {count}" for name, count in sorted(counter.items()))


def _sentences(failed: BaseExceptionGroup[Exception]) -> str:
    return "; ".join(
        _sentences(one) if isinstance(one, BaseExceptionGroup) else f"{type(one).__name__}: {one}"
        for one in failed.exceptions
    )
