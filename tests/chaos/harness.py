"""People at work while everything is killed, and then all that is checked."""

import asyncio
import random
import time
from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

from client.runs import Runs
from tests.chaos.checks import told
from tests.chaos.checks.locks import Locks
from tests.chaos.checks.stored import Stored
from tests.chaos.kills import Kills
from tests.chaos.model import LookedAt, serve_model
from tests.chaos.people import person
from tests.chaos.record import Record
from tests.chaos.system import LEASE_SECONDS, System, reachable_directory
from tests.chatkit_client import ChatKit

PEOPLE = 8
_PLAYS = (2, 6)  # in one conversation
_ENDED_SECONDS = 2 * LEASE_SECONDS + 2  # a sweep looks as often as a lease is long


class Harness:
    """All of it, with one seed."""

    def __init__(self, system: System, model: LookedAt, kills: Kills, seed: str) -> None:
        self._system = system
        self._model = model
        self._kills = kills
        self._seed = seed
        self.record = Record()
        self._locks = Locks(system.cluster.admin_url, self.record)

    async def run(self) -> str:
        """Raises AssertionError when anything was lost, mixed or repeated; returns a line of figures."""
        began = time.monotonic()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._kills.run())
            for number in range(PEOPLE):
                tasks.create_task(self._person(number))
        took = time.monotonic() - began
        free = await self._until_free()
        stored = Stored(self._system.cluster.admin_url)
        async with ChatKit(self._system.backend.url) as chat, Runs(self._system.backend.url) as runs:
            problems = [*stored.problems(self.record), *await told.problems(runs, chat, self.record, stored)]
        problems += [f"a request is not paired: {messages}" for messages in self._model.unpaired]
        assert not problems, "\n".join(problems)
        return self._figures(stored, took, free)

    async def _person(self, number: int) -> None:
        """One conversation after the other, as long as there are kills."""
        chance = random.Random(f"{self._seed} person {number}")
        async with person(self._system.backend.url, self.record, self._locks, chance, number) as begin:
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
        outcomes = Counter(run["outcome"] or run["status"] for run in stored.runs.values())
        decided = Counter(self.record.decisions.values())
        told = len(self.record.messages) + len(self.record.interactions)
        return (
            f"seed {self._seed}: {self._kills.of.total()} kills in {took:.0f} s ({_counted(self._kills.of)}); "
            f"plays: {_counted(self.record.done)}; {len(stored.runs)} runs ({_counted(outcomes)}); "
            f"kept: {told} messages, {len(self.record.inputs)} inputs, {decided[True]} approvals, "
            f"{decided[False]} refusals, {len(self.record.answers)} answers, "
            f"{len(self.record.wishes)} tasks as they must be; {len(stored.calls)} calls made once; "
            f"{self._model.requests} requests paired; longest refused without a heartbeat "
            f"{self.record.longest_lock:.1f} s of {LEASE_SECONDS:.0f}, all free {free:.1f} s after the last kill"
        )


async def run(
    kills: int,
    seed: int,
    *,
    workers: int = 1,
    directory: Path | None = None,
    told: Callable[[int], None] = lambda _: None,
) -> str:
    """Raises AssertionError, which names the seed; `directory` keeps what is stored and logged."""
    name = f"chaos-{seed}" if random.Random(seed).random() < 0.5 else None
    with nullcontext(directory) if directory else reachable_directory() as place:
        async with serve_model() as model:
            system = System(place, model.url, workers, name=name)
            killing = Kills(system, kills, random.Random(f"{seed} kills"), lambda: model.requests, told)
            try:
                return await Harness(system, model, killing, str(seed)).run()
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
