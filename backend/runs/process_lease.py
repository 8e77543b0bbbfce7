"""Ends runs whose process is gone, and runs of this process that it does not execute."""

import asyncio
import logging
import time
from collections.abc import Collection

from backend.accounts import sessions
from backend.conversations import runs
from backend.conversations.records import Entry
from backend.liveness import Confirmation, ProcessConnection
from backend.runs import metrics
from backend.runs.changes import read_changes
from backend.runs.executor import Executor
from backend.tools.table import CHANGING_TASKS
from backend.tools.task_tools import TaskTools
from backend.users import idempotency, limits
from common.database import NO_USER, Database, UserShareExceeded

SWEEP_SECONDS = 1.0
_CLEAN_UP_SECONDS = 60.0  # how often old idempotency keys and counted requests are deleted
_RUNNING_PROCESSES = "SELECT process_id FROM running_processes() AS process_id"
_RUNS_OF_PROCESS = "SELECT user_id, id FROM runs_of_process(%(process)s)"

_Run = tuple[str, str]  # user and run


class Sweeper:
    """The sweep of one process.

    A run of this process that it does not execute is ended when it is seen twice: the response to the COMMIT that
    started it was lost, or its request was cancelled before the run was launched.
    """

    def __init__(
        self,
        database: Database,
        connection: ProcessConnection,
        executor: Executor,
        tools: TaskTools,
        *,
        idempotency_days: int,
    ) -> None:
        self._database, self._connection, self._executor, self._tools = database, connection, executor, tools
        self._idempotency_days = idempotency_days
        self._unexecuted = Confirmation[_Run](SWEEP_SECONDS)
        self._clean_up_at = 0.0

    async def sweep(self) -> None:
        """Interrupts the runs of dead processes, and runs of this process that it does not execute.

        Deletes old idempotency keys, counted requests and expired sessions once a minute. Raises `DatabaseUnavailable`.
        """
        metrics.observe_process(self._database)
        rows = await self._database.fetch_all(NO_USER, _RUNNING_PROCESSES)
        processes = {row["process_id"] for row in rows}
        for process_id in await self._connection.find_dead_processes(processes):
            await self._interrupt(await self._load_runs(process_id), process_id)
        own = self._connection.process_id
        runs_of_own = await self._load_runs(own) if own in processes else set[_Run]()
        unexecuted = {(user_id, run_id) for user_id, run_id in runs_of_own if run_id not in self._executor.live}
        await self._interrupt(self._unexecuted.observe(unexecuted), own)
        if (now := time.monotonic()) >= self._clean_up_at:
            self._clean_up_at = now + _CLEAN_UP_SECONDS
            await idempotency.sweep(self._database, self._idempotency_days)
            await limits.sweep(self._database)
            await sessions.sweep(self._database)

    async def _load_runs(self, process_id: int) -> set[_Run]:
        rows = await self._database.fetch_all(NO_USER, _RUNS_OF_PROCESS, process=process_id)
        return {(row["user_id"], row["id"]) for row in rows}

    async def _interrupt(self, abandoned: Collection[_Run], process_id: int) -> None:
        """Ends runs, with what they have changed; that is read at the same time for all, as the reads may time out."""
        read = [self._read_changes(*run) for run in abandoned]
        for (user_id, run_id), changes in zip(abandoned, await asyncio.gather(*read), strict=True):
            try:
                conversation_id = await runs.end_abandoned(
                    self._database, user_id, run_id, process_id=process_id, changes=changes
                )
            except UserShareExceeded:
                continue  # a later sweep ends it
            if conversation_id is not None:
                metrics.record_outside(user_id, conversation_id, [run_id], "interrupted", level=logging.WARNING)

    async def _read_changes(self, user_id: str, run_id: str) -> Entry | None:
        """Reads what a run has changed, if it has made a call that changes tasks: how that ended may be unknown."""
        if not await runs.has_called(self._database, user_id, run_id, CHANGING_TASKS):
            return None
        return await read_changes(self._tools, user_id, run_id)
