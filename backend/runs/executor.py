"""The runs that this process executes: started, continued, stopped, and stored while they grow."""

import asyncio
import logging
import time
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from typing import Any

from backend.conversations import runs, timeline
from backend.conversations.history import send_history
from backend.conversations.records import Event, Run, Timeline
from backend.conversations.run_requests import StartedRun
from backend.errors import NotFound
from backend.runs import metrics
from backend.runs.dependencies import Dependencies
from backend.runs.execution import Execution
from backend.runs.live_run import LiveRun
from backend.runs.outcomes import Ending
from backend.runs.recorder import fetch_only_row, store_growth
from backend.runs.stream import RunStream
from common.database import DatabaseUnavailable
from common.telemetry import traces

logger = logging.getLogger(__name__)

_STORE_SECONDS = 1.0  # how often messages that grow are stored: a killed process loses no more of what was shown
_FOLLOWED_SECONDS = 0.1  # how often those are stored that somebody in another process follows


class Executor:
    def __init__(self, dependencies: Dependencies) -> None:
        self._dependencies = dependencies
        self._database, self._streams = dependencies.database, dependencies.streams
        self.live: dict[str, LiveRun] = {}
        """The trees of runs that this process executes, by the ids of their top runs."""
        self._after_runs = set[asyncio.Task[None]]()
        self._is_shutting_down = False

    def launch(self, started: StartedRun, *, tokens_today: int = 0) -> LiveRun:
        """Begins to execute a run whose row this process has just stored; without `tokens_today`, these were checked
        when it was stored.
        """
        turns = self._dependencies.agent_model_turns
        live = LiveRun(started.run, RunStream(), turns, conversation=started.conversation, tokens_today=tokens_today)
        own = Timeline(started.timeline.of_run(started.run.id).records, runs=[started.run])
        summary = timeline.find_new_summary(started.timeline, started.run)
        for event in timeline.with_summary(timeline.events_of(own), summary):
            live.stream.append(event)
        self._start_execution(live, started.timeline)
        return live

    async def resume(self, tree: Sequence[Run]) -> LiveRun | None:
        """Begins to continue a tree of runs that waited, whose lease this process has taken; None for no runs."""
        top = next((run for run in tree if not run.is_sub_agent), None)
        if top is None:
            return None
        async with self._database.transaction(top.user_id, snapshot=True) as tx:
            progress = await timeline.send_progress(tx, top.id)
            sent = await send_history(tx, top.conversation_id)
        row = await fetch_only_row(progress)
        turns = self._dependencies.agent_model_turns - row["agent_model_turns"]
        live = LiveRun(top, RunStream(row["number"]), turns, tokens_today=row["tokens_today"])
        live.has_messages = True
        self._start_execution(live, await sent.fetch())
        return live

    def _start_execution(self, live: LiveRun, history: Timeline) -> None:
        self.live[live.run.id] = live
        self._streams.live[live.run.id] = live.stream
        live.asyncio_task = asyncio.create_task(self._execute_measured(live, history), name=live.run.id)
        if self._is_shutting_down:
            live.stop(Ending("interrupted", "interrupted"))

    async def _execute_measured(self, live: LiveRun, history: Timeline) -> None:
        span = traces.span("run", {"todo.run": live.run.id, "todo.conversation": live.run.conversation_id})
        with metrics.RUNNING.track_inprogress(), span:
            await self._execute(live, history)

    async def _execute(self, live: LiveRun, history: Timeline) -> None:
        """Executes a tree of runs until it ends or waits, within its time limit.

        Then ends its stream and launches the follow-up. Errors are logged.
        """
        too_long = Ending("failed", "run_too_long", {"seconds": self._dependencies.run_seconds})
        limit = asyncio.get_running_loop().call_later(self._dependencies.run_seconds, live.stop, too_long)
        follow_up: StartedRun | None = None
        try:
            execution = Execution(self._dependencies, live, live.run, history)
            state = await execution.execute()
            follow_up = execution.follow_up
            if state == "ended" and follow_up is None:
                self._start_work_after(execution, live)
        except Exception:
            logger.exception("run %s could not be ended", live.run.id)  # the sweep ends it: nobody executes it
            live.run.status = "interrupted"
        finally:
            limit.cancel()
            is_waiting = live.run.status == "waiting"
            live.stream.append(
                Event("run_waiting" if is_waiting else "run_ended", number=live.run.end_seq, run=live.run)
            )
            if self.live.get(live.run.id) is live:  # a run that waited may have been continued already
                del self.live[live.run.id], self._streams.live[live.run.id]
        if follow_up is not None:
            self.launch(follow_up, tokens_today=live.tokens_used)

    def _start_work_after(self, execution: Execution, live: LiveRun) -> None:
        if self._is_shutting_down or not self._dependencies.limits.allow_tokens(live.tokens_used):
            return
        run, titles = execution.run, self._dependencies.titles
        if execution.left_out is not None:
            self._start_work(self._dependencies.summaries.make(run, up_to=execution.left_out))
        if run.status == "completed" and (message := titles.find_first_message(execution.history)) is not None:
            self._start_work(titles.make(run, message, execution.recorder.answer))

    def _start_work(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._after_runs.add(task)
        task.add_done_callback(self._after_runs.discard)

    def signal(self, run_id: str) -> None:
        if (live := self.live.get(run_id)) is not None:
            live.has_messages = True
            asyncio.ensure_future(self._look_for_stop(live))  # noqa: RUF006 - the run outlives it

    async def _look_for_stop(self, live: LiveRun) -> None:
        try:
            run = await runs.load(self._database, live.run.user_id, live.run.id)
        except NotFound:  # its user was deleted
            live.stop(Ending("cancelled", "cancelled"))
            return
        except DatabaseUnavailable:
            return  # it looks again when the process's connection is back
        if run.stop_requested or run.status != "running":  # as of a conversation that was deleted
            live.stop(Ending("cancelled", "cancelled"))

    async def signal_all(self) -> None:
        """Signals every run, as a notification may have been missed while the LISTEN connection was lost."""
        for run_id in list(self.live):
            self.signal(run_id)

    def interrupt_all(self) -> None:
        self._is_shutting_down = True
        self._streams.leave()
        for task in self._after_runs:
            task.cancel()
        for live in self.live.values():
            live.stop(Ending("interrupted", "interrupted"))

    async def shut_down(self, within_seconds: float) -> None:
        """Interrupts every run and waits until it is stored; other processes end what is left."""
        self.interrupt_all()
        with suppress(TimeoutError):
            async with asyncio.timeout(within_seconds):
                while running := [live.asyncio_task for live in self.live.values() if live.asyncio_task is not None]:
                    await asyncio.wait(running)

    async def store_growth(self) -> None:
        """Stores messages that grow: all once a second, and ten times a second those that are followed elsewhere.

        A user whose messages are still being stored, as one whose share of the database is used, delays no other.
        """
        next_for_all = 0.0
        storing = dict[str, asyncio.Task[None]]()  # by user
        async with asyncio.TaskGroup() as group:
            while True:
                await asyncio.sleep(_FOLLOWED_SECONDS)
                now = time.monotonic()
                if is_for_all := now >= next_for_all:
                    next_for_all = now + _STORE_SECONDS
                growing = self._find_growing(is_for_all=is_for_all)
                begun = {
                    user_id: group.create_task(self._store_growth_of(growing[user_id]))
                    for user_id in growing.keys() - storing.keys()
                }
                if begun:
                    await asyncio.wait(begun.values(), timeout=_FOLLOWED_SECONDS)
                storing |= begun
                storing = {user_id: task for user_id, task in storing.items() if not task.done()}
                unstored = {run_id for run_id, live in self.live.items() if live.run.user_id in storing}
                await self._streams.notify_followers(unstored)

    def _find_growing(self, *, is_for_all: bool) -> dict[str, list[LiveRun]]:
        """Returns the runs whose messages are to be stored, by user."""
        found = dict[str, list[LiveRun]]()
        for live in self.live.values():
            if live.growing and (is_for_all or live.run.id in self._streams.followed):
                found.setdefault(live.run.user_id, []).append(live)
        return found

    async def _store_growth_of(self, growing: Sequence[LiveRun]) -> None:
        for live in growing:
            try:
                await store_growth(self._database, live)
            except Exception as error:  # noqa: BLE001 - the run itself finds out that its lease or the database is lost
                name = type(error).__name__
                logger.warning("a message of run %s could not be stored yet: %s", live.run.id, name)
