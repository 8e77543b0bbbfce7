"""The runs that this process executes: started, continued, stopped, and stored while they grow."""

import asyncio
import logging
import time
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from typing import Any

from agents.tool_context import ToolContext

from backend.agents.sub_agents import Assignment
from backend.conversations import runs, steering, sub_agents, timeline
from backend.conversations.history import load_history, send_history
from backend.conversations.records import Event, Run, Timeline, ToolCall
from backend.conversations.run_requests import StartedRun
from backend.errors import LeaseLost, NotFound
from backend.model.tool_calls import storable
from backend.runs import metrics
from backend.runs.execution import Dependencies, Execution, ExecutionState
from backend.runs.live_run import LiveRun, RunContext
from backend.runs.outcomes import Ending, RunError
from backend.runs.recorder import fetch_only_row
from backend.runs.stream import RunStream
from backend.runs.sub_agents import render_result
from common.database import DatabaseUnavailable
from common.telemetry import traces

logger = logging.getLogger(__name__)

_STORE_SECONDS = 1.0  # how often messages that grow are stored: a killed process loses no more of what was shown
_FOLLOWED_SECONDS = 0.1  # how often those are stored that somebody in another process follows
_TOLD_ERRORS = ("empty_answer", "too_many_model_turns")
"""Of a sub-agent, what its parent's run does not end with: the assistant reads it."""
_OVER_LIMIT = (
    "The call was not made: this person has started {most} agents within a day, which is the limit. Say so, and do "
    "what you can without one."
)


class Executor:
    def __init__(self, dependencies: Dependencies) -> None:
        self._dependencies = dependencies
        self._database, self._streams = dependencies.database, dependencies.streams
        self.live = self._streams.live
        self._after_runs = set[asyncio.Task[None]]()
        self._is_shutting_down = False

    def launch(self, started: StartedRun) -> LiveRun:
        """Begins to execute a run whose row this process has just stored."""
        turns = self._dependencies.agent_model_turns
        live = LiveRun(started.run, RunStream(), turns, conversation=started.conversation)
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
        live = LiveRun(top, RunStream(row["number"]), turns)
        live.has_messages = True
        self._start_execution(live, await sent.fetch())
        return live

    def _start_execution(self, live: LiveRun, history: Timeline) -> None:
        self.live[live.run.id] = live
        live.asyncio_task = asyncio.create_task(self._execute_measured(live, history), name=live.run.id)
        if self._is_shutting_down:
            live.stop(Ending("interrupted", "interrupted"))

    async def _execute_measured(self, live: LiveRun, history: Timeline) -> None:
        span = traces.span("run", {"todo.run": live.run.id, "todo.conversation": live.run.conversation_id})
        with metrics.RUNNING.track_inprogress(), span:
            await self._execute_until_end(live, history)

    async def _execute_until_end(self, live: LiveRun, history: Timeline) -> None:
        """Executes a run until it ends or waits, within its time limit, and again while it has messages to read.

        Then ends its stream and launches the follow-up. Errors are logged.
        """
        too_long = Ending("failed", "run_too_long", {"seconds": self._dependencies.run_seconds})
        limit = asyncio.get_running_loop().call_later(self._dependencies.run_seconds, live.stop, too_long)
        following: StartedRun | None = None
        try:
            while True:
                execution = Execution(self._dependencies, live, live.run, history)
                state = await execution.execute()
                self._start_work_after(execution, history, state)
                if state != "unread":
                    break
                live.has_messages = True
                if (following := await steering.start_follow_up(self._database, live.run)) is not None:
                    live.run = await runs.load(self._database, live.run.user_id, live.run.id)
                    live.run.next_run_id = following.run.id
                    execution.run = live.run
                    execution.record_end()
                    break
                history = await load_history(self._database, live.run.user_id, live.run.conversation_id)
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
                del self.live[live.run.id]
        if following is not None:
            self.launch(following)

    def _start_work_after(self, execution: Execution, history: Timeline, state: ExecutionState) -> None:
        if state != "ended" or self._is_shutting_down:
            return
        run = execution.run
        if execution.left_out is not None:
            self._start_work(self._dependencies.summaries.make(run, up_to=execution.left_out))
        if run.status == "completed" and (message := self._dependencies.titles.find_first_message(history)) is not None:
            self._start_work(self._dependencies.titles.make(run, message, execution.recorder.answer))

    def _start_work(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._after_runs.add(task)
        task.add_done_callback(self._after_runs.discard)

    async def run_sub_agent(self, context: ToolContext[RunContext], assignment: Assignment, agent: str) -> str:
        """Executes or continues the run of a tool call; returns what the assistant reads, or raises what ends both."""
        parent, call_id = context.context, context.tool_call_id
        run = await sub_agents.find(self._database, parent.run, call_id)
        was_started = run is None
        if run is None and (run := await self._start_sub_agent(parent, call_id, assignment, agent)) is None:
            return _OVER_LIMIT.format(most=self._dependencies.sub_agents_per_day)
        history = await sub_agents.load_run(self._database, run)
        execution = Execution(self._dependencies, parent.live, run, history, parent=parent)
        code = None if was_started else self._reason_to_end(parent.recorder.open_calls[call_id], run, history)
        if code is not None:
            await execution.end_waiting(code)
        elif await execution.execute() == "waiting":
            parent.waiting_agents.add(call_id)
            return ""
        if parent.live.stop_requested.is_set():
            raise RunError("cancelled")  # it ends as its tree of runs does
        if run.status == "interrupted":
            raise LeaseLost
        if run.status == "failed" and run.error_code not in _TOLD_ERRORS:
            raise RunError(run.error_code or "failed", **((execution.ending and execution.ending.values) or {}))
        return render_result(run, await sub_agents.load_run(self._database, run))

    async def _start_sub_agent(
        self, parent: RunContext, call_id: str, assignment: Assignment, agent: str
    ) -> Run | None:
        task, details = storable(assignment.task), {"task_id": assignment.task_id, "time_zone": parent.time_zone}
        async with parent.live.lock:
            started = await sub_agents.start(
                self._database, parent.run, call_id, agent, task, details, per_day=self._dependencies.sub_agents_per_day
            )
        if started is None:
            return None
        run, entry = started
        parent.live.stream.append(Event("entry_completed", entry, entry.last_seq, run=run))
        return run

    def _reason_to_end(self, call: ToolCall, run: Run, history: Timeline) -> str | None:
        """Returns why a sub-agent that waited does not go on; None if it does."""
        if self._dependencies.approvals.has_reach_of_agent_changed(call):
            return "reach_changed"
        calls = history.of_run(run.id).calls
        newest = [one for one in calls if one.model_turn == calls[-1].model_turn]
        return "other_message" if any(one.reason == "other_message" for one in newest) else None

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
        """Stores messages that grow: all once a second, and ten times a second those that are followed elsewhere."""
        next_for_all = 0.0
        while True:
            await asyncio.sleep(_FOLLOWED_SECONDS)
            now = time.monotonic()
            if is_for_all := now >= next_for_all:
                next_for_all = now + _STORE_SECONDS
            for live in list(self.live.values()):
                if is_for_all or live.run.id in self._streams.followed:
                    await self._store_growth_of(live)
            await self._streams.notify_followers()

    async def _store_growth_of(self, live: LiveRun) -> None:
        for recorder in list(live.recorders):
            try:
                await recorder.store_growth()
            except Exception as error:  # noqa: BLE001 - the run itself finds out that its lease or the database is lost
                logger.warning("a message of run %s could not be stored yet: %s", live.run.id, type(error).__name__)
