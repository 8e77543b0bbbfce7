"""Runs simulated users while parts of the system are killed, and then all checks."""

import asyncio
import random
import time
from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

from tests.chaos.agents.scenarios import AgentScenario
from tests.chaos.agents.workload import AgentWorkload
from tests.chaos.checks import responses
from tests.chaos.checks.stored_rows import StoredRows
from tests.chaos.client_record import ClientRecord
from tests.chaos.killer import Killer
from tests.chaos.model import CheckingEndpoint, serve_model
from tests.chaos.scenarios import Scenario, simulate_user
from tests.chaos.system import APPROVAL_TOOLS, KillableSystem, System, reachable_directory
from tests.chatkit_client import ChatKit
from tests.scale.system import ScaledSystem
from todo_client.runs import Runs

USERS = 8
USERS_WITH_AGENTS = 4  # each may have a running command
# On a busy machine; a process declares another one dead only after it has been connected for 10 s itself.
_LEASE_SECONDS = 120


class Harness:
    def __init__(
        self,
        system: KillableSystem,
        model: CheckingEndpoint,
        killer: Killer,
        seed: int,
        agents: AgentWorkload | None = None,
    ) -> None:
        self._system = system
        self._model = model
        self._killer = killer
        self._seed = seed
        self._agents = agents
        self._record = ClientRecord()

    async def run(self) -> str:
        """Returns a line of figures; raises AssertionError if anything was lost, mixed up or repeated."""
        start = time.monotonic()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._killer.run())
            for number in range(USERS_WITH_AGENTS if self._agents else USERS):
                tasks.create_task(self._run_user(number))
        seconds = time.monotonic() - start
        free_seconds = await self._wait_until_free()
        rows = StoredRows(self._system.cluster.admin_url)
        async with ChatKit(self._system.url) as chat, Runs(self._system.url) as runs:
            problems = await self._agents.find_problems(rows, chat, self._record) if self._agents else []
            problems += rows.find_problems(self._record)
            problems += await responses.find_problems(runs, chat, self._record, rows)
        problems += [f"a request has unpaired calls: {messages}" for messages in self._model.unpaired]
        assert not problems, "\n".join(problems)
        return self._render_figures(rows, seconds, free_seconds)

    async def _run_user(self, number: int) -> None:
        """Starts one conversation after the other until the last kill."""
        rng = random.Random(f"{self._seed} user {number}")
        kind = AgentScenario if self._agents else Scenario
        async with simulate_user(self._system.url, self._record, rng, number, kind) as new_scenario:
            while not self._killer.is_finished:
                await new_scenario().run(until=lambda: self._killer.is_finished)

    async def _wait_until_free(self) -> float:
        """Returns how many seconds it took, after the last kill, until no run was running."""
        start = time.monotonic()
        while any(run["status"] == "running" for run in StoredRows(self._system.cluster.admin_url).runs.values()):
            assert time.monotonic() - start < _LEASE_SECONDS, "a conversation stays locked"
            await asyncio.sleep(0.2)
        return time.monotonic() - start

    def _render_figures(self, rows: StoredRows, seconds: float, free_seconds: float) -> str:
        outcomes = Counter(run["status"] for run in rows.runs.values())
        decisions = Counter(self._record.decisions.values())
        messages = len(self._record.messages) + len(self._record.interactions)
        return (
            f"seed {self._seed}: {self._killer.kills.total()} kills in {seconds:.0f} s "
            f"({_render_counts(self._killer.kills)}); steps: {_render_counts(self._record.steps)}; "
            f"{len(rows.runs)} runs ({_render_counts(outcomes)}); "
            f"kept: {messages} messages, {len(self._record.inputs)} inputs, {decisions[True]} approvals, "
            f"{decisions[False]} rejections, {len(self._record.answers)} answers, "
            f"{len(self._record.expected_tasks)} tasks as expected; {len(rows.task_calls)} calls made once; "
            f"{self._model.requests} requests with paired calls; "
            f"all conversations free {free_seconds:.1f} s after the last kill"
            f"{self._agents.figures if self._agents else ''}"
        )


async def run_kills(
    kills: int,
    seed: int,
    *,
    agents: bool = False,
    scaled: bool = False,
    directory: Path | None = None,
    on_kill: Callable[[int], None] = lambda _: None,
) -> str:
    """Returns a line of figures; raises AssertionError, which names the seed. `directory` keeps the data and logs.

    With `agents`, users start agents, and the workspace is killed, too. `scaled` starts several of each service, and
    HAProxy and PgBouncer, which are killed, too.
    """
    with nullcontext(directory) if directory else reachable_directory() as folder:
        approve_starts = random.Random(f"{seed} approvals").random() < 0.5
        workload = AgentWorkload(folder, approve_starts=approve_starts) if agents else None
        async with serve_model(workload.script if workload else None) as model:
            system: KillableSystem
            if scaled:
                system = ScaledSystem(folder, model.url)
            else:
                system = System(
                    folder,
                    model.url,
                    workspace=workload.workspace if workload else None,
                    approval_tools=workload.approval_tools if workload else APPROVAL_TOOLS,
                )
            requests = workload.script if workload else model
            killer = Killer(system, kills, random.Random(f"{seed} kills"), lambda: requests.requests, on_kill)
            try:
                return await Harness(system, model, killer, seed, workload).run()
            except* Exception as errors:
                raise AssertionError(f"with the seed {seed}: {_join(errors)}") from errors
            finally:
                system.stop()


def _render_counts(counter: Counter[str]) -> str:
    return ", ".join(f"{name} {count}" for name, count in sorted(counter.items()))


def _join(errors: BaseExceptionGroup[Exception]) -> str:
    return "; ".join(
        _join(error) if isinstance(error, BaseExceptionGroup) else f"{type(error).__name__}: {error}"
        for error in errors.exceptions
    )
