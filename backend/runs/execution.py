"""Executes one run: the SDK's loop, approved tool calls, steering messages, and the outcome."""

import asyncio
import time
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from agents import Agent, FunctionTool, ModelSettings, RunConfig, RunContextWrapper, Runner, ToolExecutionConfig
from agents.exceptions import MaxTurnsExceeded
from agents.run import CallModelData, ModelInputData
from agents.tool_context import ToolContext
from openai.types.responses import ResponseFunctionToolCall

from backend.context.fitting import fit
from backend.context.hidden_context import sanitize_item
from backend.context.memory import render_directory, render_directory_notes, render_memory
from backend.context.render import render_input
from backend.context.summaries import Summaries
from backend.context.titles import Titles
from backend.context.window import Window, choose_window
from backend.conversations import runs, steering, sub_agents
from backend.conversations.history import load_history
from backend.conversations.records import CallReason, Entry, EventRecord, Run, Timeline, ToolCall
from backend.conversations.timeline import events_of, load_trees
from backend.errors import LeaseLost
from backend.ids import new_id
from backend.model.chat_model import ChatModel
from backend.runs import metrics
from backend.runs.approvals import Approvals
from backend.runs.live_run import LiveRun, RunContext
from backend.runs.outcomes import Ending, RunError, causes_of, get_ending
from backend.runs.recorder import Recorder
from backend.runs.stream import Streams
from backend.runs.sub_agents import add_results, render_history, render_steering
from backend.tools.connectors.names import server_of
from backend.tools.table import find_tool
from backend.tools.workspace.tools import WorkspaceTools
from common.database import Database, DatabaseUnavailable

ExecutionState = Literal["ended", "waiting", "unread"]
"""How far an execution came: the run has ended, waits for approval, or has messages to read before it can complete."""

MAX_MODEL_TURNS = 10
_SHORT_SECONDS = 0.7  # how long a stop waits for a tool of another MCP server, and for a command that has not begun
_REASONS: dict[str, CallReason] = {
    "cancelled": "stopped",
    "other_message": "other_message",
    "reach_changed": "reach_changed",
}
_RETRY_SECONDS = 0.5
_LOOK_SECONDS = 0.02  # how often a stop looks whether the tool at work has ended
# Finish reasons of a last model turn, and the codes of their notices.
_CUT_OFF = {"max_output_tokens": "answer_over_limit", "content_filter": "answer_filtered"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Dependencies:
    """What every execution of a process needs.

    `history_tokens` are the budget of a request's messages, `tool_wait_seconds` how long a stop waits for a tool's end,
    and `run_seconds` how long a run may be executed. The sub-agents of a message have `agent_model_turns` together, and
    a user may start `sub_agents_per_day`.
    """

    database: Database
    agents: Mapping[str, Agent[RunContext]]
    approvals: Approvals
    workspace: WorkspaceTools | None
    streams: Streams
    summaries: Summaries
    titles: Titles
    history_tokens: int
    tool_wait_seconds: float
    run_seconds: float
    agent_model_turns: int
    sub_agents_per_day: int | None


class Execution:
    """Executes one run in this process. Each run of the SDK ends where calls have to wait for approval."""

    def __init__(
        self,
        dependencies: Dependencies,
        live: LiveRun,
        run: Run,
        history: Timeline,
        *,
        parent: RunContext | None = None,
    ) -> None:
        """The history of a sub-agent's run has neither the memory nor the directory: its `parent` has them."""
        self._dependencies, self._database = dependencies, dependencies.database
        self._live, self.run, self._history = live, run, history
        own = history.of_run(run.id)
        first = own.find_first("user_message")
        seed, self._goal = (first.id, first.text) if first else (run.id, "")
        self.recorder = Recorder(self._database, live, run, seed=seed, approvals=dependencies.approvals)
        self.recorder.continue_from(own)
        time_zone = (first.details or {}).get("time_zone") if first else None
        workspace = dependencies.workspace
        folder = workspace.folder_of(run.conversation_id, run.agent) if workspace else ""
        memory, directory = (parent.memory, parent.directory) if parent else (history.memory, history.directory)
        if workspace is None:
            directory = None
        elif folder != run.conversation_id:  # an agent that may send data elsewhere reads neither
            memory, directory = "", None
        notes = render_memory(memory, tokens=dependencies.history_tokens).notes
        if directory and not run.is_sub_agent:
            notes += render_directory(directory)
        self.context = RunContext(run, live, self.recorder, time_zone, folder, directory, memory, notes)
        self._notes_of_directory = ""
        self.left_out: int | None = None
        """The number up to which the model has not read the conversation, as it is too long."""
        self._messages_read = len(live.messages)
        self._steered: list[tuple[int, list[Any]]] = []  # of an SDK run: where messages were inserted
        self._began = time.perf_counter() if run.is_sub_agent else live.began
        self.ending: Ending | None = None

    async def execute(self) -> ExecutionState:
        """Executes the run until it has ended, waits, or has more to read; what was shown is stored in any case.

        Errors, stops and cancellation become the run's outcome. A lost lease does not: the outcome that another process
        stored is read.
        """
        self._live.recorders.append(self.recorder)
        try:
            return await self._run_until_end_or_wait()
        except asyncio.CancelledError:
            return await self._finish(self._live.ending or Ending("interrupted", "interrupted"))
        except Exception as error:  # noqa: BLE001 - the edge of a run: it ends with an outcome
            if any(isinstance(cause, LeaseLost) for cause in causes_of(error)):
                await self._read_outcome()
                return "ended"
            return await self._finish(self._live.ending or get_ending(error, self.run.id))
        finally:
            self._live.recorders.remove(self.recorder)

    async def _run_until_end_or_wait(self) -> ExecutionState:
        await self._copy_uploads()
        await self._read_directory()
        while True:
            waiting = {call.id for call in self._waiting_calls} | self.context.waiting_agents
            if ready := [call for call in self.recorder.open_calls.values() if call.id not in waiting]:
                await self._run_until_stopped(self._make_calls(ready))
            if self._waiting_calls or self.context.waiting_agents:
                if await self._wait_for_approvals():
                    return "waiting"
                await self._load_history()
                continue
            await self._run_agent()
            if not self.recorder.open_calls:
                return await self._finish(Ending("completed"))

    async def end_waiting(self, code: str | None) -> None:
        """Cancels a sub-agent that waited, without another request to its model; `code` is why."""
        await self._finish(Ending("cancelled", code if code in _REASONS else "cancelled"))

    async def _load_history(self) -> None:
        self._messages_read = len(self._live.messages)
        if self.run.is_sub_agent:
            self._history = await sub_agents.load_run(self._database, self.run)
        else:
            self._history = await load_history(self._database, self.run.user_id, self.run.conversation_id)
        self.recorder.continue_from(self._history.of_run(self.run.id))

    async def _copy_uploads(self) -> None:
        workspace, folder, run = self._dependencies.workspace, self.context.folder, self.run
        if run.is_sub_agent and workspace and folder != run.conversation_id and not self.recorder.model_turn:
            await workspace.give_uploads(run.conversation_id, folder, user_id=run.user_id)

    async def _read_directory(self) -> None:
        """Reads a sub-agent's notes. Raises `RunError` if no conversation can work in directories any more."""
        workspace, directory, run = self._dependencies.workspace, self.context.directory, self.run
        if directory is None or not run.is_sub_agent or workspace is None:
            return
        if not workspace.has_owner:
            raise RunError("no_directories")
        if notes := await workspace.read_notes(self.context.folder, directory, user_id=run.user_id):
            self._notes_of_directory = render_directory_notes(*notes, tokens=self._dependencies.history_tokens)

    # The model

    async def _run_agent(self) -> None:
        if self.recorder.is_changed:
            await self._load_history()
        agent = self._dependencies.agents[self.run.agent]
        assert isinstance(agent.model, ChatModel)
        model = agent.model.for_run(self.run.options.get("model"), self.recorder.read_piece, goal=self._goal)
        self.recorder.model_name = model.name
        temperature = None if self.run.is_sub_agent else self.run.options.get("temperature")
        window = await self._choose_window()
        config = RunConfig(
            model=model,
            model_settings=ModelSettings(
                temperature=temperature, retry=model.retry_settings(self.recorder.publish_progress)
            ),
            tracing_disabled=True,
            tool_not_found_behavior="return_error_to_model",
            # In the order in which the model wrote them; and none is made after a sub-agent that waits.
            tool_execution=ToolExecutionConfig(max_function_tool_concurrency=1),
            call_model_input_filter=partial(self._prepare_input, head=window.head),
        )
        self._steered = []
        # Its model turns are counted by `_count_model_turn`, as a run may need several runs of the SDK.
        max_turns = MAX_MODEL_TURNS + self._dependencies.agent_model_turns
        items, context = window.render(), self.context
        await self._run_until_stopped(
            Runner.run(agent, items, context=context, hooks=self.recorder, max_turns=max_turns, run_config=config)
        )

    async def _choose_window(self) -> Window:
        if self.run.is_sub_agent:
            history = render_history(self.run, self._history, notes=self._notes_of_directory)
            return Window(history, head=1)  # its assignment stays
        await add_results(self._database, self.run.user_id, self._history)
        window = choose_window(self._history, tokens=self._dependencies.history_tokens)
        self.left_out = window.left_out
        return window

    async def _run_until_stopped(self, work: Coroutine[Any, Any, object]) -> None:
        """Carries out work and raises its error.

        After a stop it lets the tool that is at work finish, as its result is recorded, and raises `CancelledError`.
        """
        working = asyncio.create_task(work)
        stopping = asyncio.create_task(self._live.stop_requested.wait())
        try:
            await asyncio.wait({working, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if not working.done():
                await self._wait_for_tool(working)
                working.cancel()
                await asyncio.wait({working})
                raise asyncio.CancelledError
            working.result()
        finally:
            stopping.cancel()
            working.cancel()

    async def _wait_for_tool(self, working: asyncio.Task[object]) -> None:
        """Waits for the tool that is at work, as long as a stop may wait; the recorder lets no other one begin.

        A sub-agent stops by itself; its command is killed, and returns the output so far.
        """
        workspace, now = self._dependencies.workspace, asyncio.get_running_loop().time
        has_sub_agent = self._live.recorders[-1] is not self.recorder
        tools = [call.tool for call in self.recorder.open_calls.values() if call.id in self.recorder.begun]
        is_connector = any(server_of(tool) is not None for tool in tools)
        may_be_queued = any(find_tool(tool).runs_programs for tool in tools)
        began = now()
        while self._is_at_work and not working.done():
            is_short = is_connector or may_be_queued
            seconds = _SHORT_SECONDS if is_short else self._dependencies.tool_wait_seconds
            if not has_sub_agent and now() - began >= seconds:
                break
            if self.run.is_sub_agent and workspace is not None:
                is_queued = not await workspace.stop(self.context.folder, user_id=self.run.user_id)
                may_be_queued = may_be_queued and is_queued
            await asyncio.wait({working}, timeout=_LOOK_SECONDS)

    # Calls

    @property
    def _is_at_work(self) -> bool:
        return not (self.recorder.begun - self.context.waiting_agents).isdisjoint(self.recorder.open_calls)

    @property
    def _waiting_calls(self) -> list[ToolCall]:
        """The open calls that wait for approval, or will once `_wait_for_approvals` has stored that."""
        waiting = self.context.waiting
        calls = self.recorder.open_calls.values()
        return [call for call in calls if call.id in waiting or call.state == "awaiting_approval"]

    async def _make_calls(self, calls: Sequence[ToolCall]) -> None:
        """Makes calls outside the SDK, one after another until a stop, and records their results."""
        agent = self._dependencies.agents[self.run.agent]
        wrapper = RunContextWrapper(context=self.context)
        # Its own tools also where they are not enabled any more: what was approved does not depend on that.
        tools = {tool.name: tool for tool in [*agent.tools, *await agent.get_all_tools(wrapper)]}
        for call in calls:
            if self._live.stop_requested.is_set():
                return
            if self._dependencies.approvals.has_reach_changed(call):
                call.state, call.reason = "not_made", "reach_changed"
                await self.recorder.store([call])
                continue
            tool = tools.get(call.tool)
            if not isinstance(tool, FunctionTool):
                call.output, call.state = f"Tool {call.tool!r} not found.", "failed"
                await self.recorder.store([call])
                continue
            item = ResponseFunctionToolCall(
                type="function_call", call_id=call.id, name=call.tool, arguments=call.arguments
            )
            of_call = ToolContext.from_agent_context(wrapper, call.id, item, agent)
            if call.state != "running":
                await self.recorder.begin_call(call)
            await self.recorder.on_tool_start(of_call, agent, tool)
            output = await tool.on_invoke_tool(of_call, call.arguments)
            await self.recorder.on_tool_end(of_call, agent, tool, output)

    async def _wait_for_approvals(self) -> bool:
        """Stores that the tree of runs waits for approvals and publishes the requests, so that any process can continue
        it. Returns false if all were decided already. Raises `CancelledError` if the run is to stop.
        """
        waiting = self._waiting_calls
        for call in waiting:
            call.approval_text = await self._dependencies.approvals.describe(self.run, call, self.context.directory)
            call.state = "awaiting_approval"
        later = [
            call
            for call in self.recorder.open_calls.values()
            if call.state == "running" and call.id not in self.recorder.begun
        ]
        waits = await self.recorder.store_wait(waiting, later)
        asked = len(waiting) + len(self.context.waiting_agents)
        self.context.waiting, self.context.waiting_agents = set(), set()
        if waits:
            self.run.status = "waiting"
            if not self.run.is_sub_agent:
                metrics.record_pause(self.run, pending_approvals=asked)
            return True
        if (await runs.load(self._database, self.run.user_id, self.run.id)).stop_requested:
            self._live.stop(Ending("cancelled", "cancelled"))
            raise asyncio.CancelledError
        await self._publish_decisions()
        return False

    async def _publish_decisions(self) -> None:
        """Publishes the decisions of a user who was faster than this process, which may be stored by another one."""
        stream, top = self._live.stream, self._live.run
        after = stream.last_number
        for event in events_of(await load_trees(self._database, top.user_id, [top.id], after=after), after):
            stream.append(event)

    # The outcome

    async def _finish(self, ending: Ending) -> ExecutionState:
        """Stores the outcome of the run with all that is not stored yet, publishes both, and retries while the database
        is away. Returns `unread` if the run has messages to read first, and `ended` without storing anything if the
        lease is lost. An answer without text becomes the failure `empty_answer`.
        """
        records: list[EventRecord] = [*self.recorder.take_unstored()]
        messages = [one for one in records if isinstance(one, Entry) and one.kind == "assistant_message"]
        if ending.outcome == "completed" and not messages:
            ending = Ending("failed", "empty_answer")
        records += self._create_notice(ending)
        for call in self.recorder.open_calls.values():
            call.state = "unknown" if call.id in self.recorder.begun else "not_made"
            call.reason = _REASONS.get(ending.error_code or "", "ended")
            records.append(call)
        self.run.error_code, self.ending = ending.error_code, ending
        may_be_stored = False
        while True:
            try:
                await self._end_sub_agents(ending)
                if await self.recorder.store(records, ending.outcome):
                    self.record_end()
                    return "ended"
                if self._live.stop_requested.is_set():  # what the user stops answers nothing more
                    return await self._finish(self._live.ending or Ending("cancelled", "cancelled"))
                return "unread"
            except DatabaseUnavailable:  # the lease lasts as long as the process
                may_be_stored = True
                await asyncio.sleep(_RETRY_SECONDS)
            except LeaseLost:  # or the response to an earlier COMMIT was lost
                await self._read_outcome()
                if may_be_stored and self.run.status == ending.outcome:
                    self.record_end()
                return "ended"

    async def _read_outcome(self) -> None:
        stored = await runs.load(self._database, self.run.user_id, self.run.id)
        self.run.status, self.run.end_seq = stored.status, stored.end_seq

    def _create_notice(self, ending: Ending) -> list[Entry]:
        code = ending.error_code or ending.outcome
        if ending.outcome == "completed":
            code = _CUT_OFF.get(self.recorder.finish_reason or "")
        if code is None:
            return []
        return [Entry(self.run.id, new_id("ntc"), "notice", details={"code": code, "values": ending.values or {}})]

    def record_end(self) -> None:
        metrics.record_end(
            self.run,
            began=self._began,
            first_event_seconds=self._live.first_event_seconds,
            tool_calls=len(self.recorder.calls),
        )

    async def _end_sub_agents(self, ending: Ending) -> None:
        """Cancels the sub-agents that wait, or were to go on, as their run ends."""
        for call in [call for call in self.recorder.open_calls.values() if find_tool(call.tool).agent]:
            run = await sub_agents.find(self._database, self.run, call.id)
            if run is not None and run.status == "running":
                history = await sub_agents.load_run(self._database, run)
                await Execution(self._dependencies, self._live, run, history).end_waiting(ending.error_code)

    # The input of a request

    async def _prepare_input(self, data: CallModelData[Any], *, head: int) -> ModelInputData:
        """Returns the input of the next request, shortened to the budget; the first `head` items stay.

        Steering messages are inserted where the model read them first: each request begins as the one before. Raises
        what `_count_model_turn` does.
        """
        await self.recorder.wait_if_stopped()
        items = list(data.model_data.input)
        if entries := await self._read_messages():
            self._steered.append((len(items), render_input(Timeline([*entries]))))
        for position, messages in reversed(self._steered):
            items[position:position] = messages
        self._count_model_turn()
        items = fit(list(map(sanitize_item, items)), tokens=self._dependencies.history_tokens, head=head)
        return ModelInputData(items, data.model_data.instructions)

    async def _read_messages(self) -> Sequence[Entry]:
        """Returns the steering messages that this run's model has not read.

        New ones are taken from the database and published as messages of the top run, once for all runs of the tree.
        """
        live = self._live
        if live.has_messages:
            live.has_messages = False
            for entry in await steering.take_messages(self._database, live.run):
                live.messages.append(entry)
                self.recorder.publish_read(entry)
        unread, self._messages_read = live.messages[self._messages_read :], len(live.messages)
        return [render_steering(entry) for entry in unread] if self.run.is_sub_agent else unread

    def _count_model_turn(self) -> None:
        """Raises `MaxTurnsExceeded`, and `RunError` for a sub-agent, if there are none left."""
        if not self.run.is_sub_agent:
            if self.recorder.model_turn >= MAX_MODEL_TURNS:
                raise MaxTurnsExceeded("the model turns are used up")
        elif self._live.agent_model_turns_left <= 0:
            raise RunError("too_many_model_turns", most=self._dependencies.agent_model_turns)
        else:
            self._live.agent_model_turns_left -= 1
