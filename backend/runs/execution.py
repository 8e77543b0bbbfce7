"""Executes one run: the loop around the Agents SDK, and what happens at each of its steps."""

import asyncio
import time
from collections.abc import Sequence
from functools import partial
from typing import Any, Literal

from agents import (
    Agent,
    FunctionTool,
    ModelResponse,
    ModelSettings,
    RunConfig,
    RunContextWrapper,
    RunHooks,
    Runner,
    Tool,
    ToolExecutionConfig,
)
from agents.exceptions import MaxTurnsExceeded
from agents.run import CallModelData, ModelInputData
from agents.tool_context import ToolContext
from openai.types.responses import ResponseFunctionToolCall

from backend.context.fitting import fit
from backend.context.hidden_context import sanitize_item
from backend.context.render import output_of, render_input
from backend.context.replays import Replays, add_replay, find_replays, render_replay
from backend.conversations import runs, steering, sub_agents
from backend.conversations.history import load_history
from backend.conversations.records import Entry, Event, EventRecord, Run, Timeline, ToolCall
from backend.conversations.run_requests import StartedRun
from backend.conversations.timeline import events_of, load_trees
from backend.errors import LeaseLost
from backend.model.chat_model import ChatModel
from backend.model.tool_calls import storable
from backend.runs import metrics
from backend.runs.calls import add_result, count_calls, create_calls, get_text, limit_calls
from backend.runs.changes import add_named, may_have_changed_tasks, read_changes
from backend.runs.dependencies import Dependencies
from backend.runs.false_claims import has_false_claim, may_have_changed
from backend.runs.live_run import LiveRun
from backend.runs.model_input import choose_history, create_context, prepare_folder
from backend.runs.outcomes import Ending, RunError, causes_of, get_ending
from backend.runs.recorder import Recorder
from backend.runs.sub_agents import OVER_LIMIT, find_reason_to_end, render_result, render_steering
from backend.tools.connectors.names import server_of
from backend.tools.run_context import Assignment, RunContext
from backend.tools.table import find_tool
from common.database import DatabaseUnavailable
from common.named import admits_failure

ExecutionState = Literal["ended", "waiting"]
"""Whether a run has ended, or waits for approval."""

MAX_MODEL_TURNS = 10
_SHORT_SECONDS = 0.7  # how long a stop waits for a tool of another MCP server, and for a command that has not begun
_LOOK_SECONDS = 0.02  # how often a stop looks whether the tool at work has ended
_RETRY_SECONDS = 0.5
# Of a sub-agent, what its parent's run does not end with: the assistant reads it.
_ERRORS_FOR_PARENT = ("empty_answer", "too_many_model_turns")


class Execution(RunHooks[RunContext]):
    """Executes one run in this process; the methods stand in the order in which they are called.

    `execute` is the loop. In it, `Runner.run` is the SDK's loop of requests and tool calls: `prepare_input` and
    `on_llm_start`, the request, `on_llm_end`, then for one call after another `on_tool_start`, the tool and
    `on_tool_end`, and again, until a response has no calls. It also ends where a call waits for approval.
    """

    def __init__(
        self,
        dependencies: Dependencies,
        live: LiveRun,
        run: Run,
        history: Timeline,
        *,
        parent: RunContext | None = None,
    ) -> None:
        self._dependencies, self._database = dependencies, dependencies.database
        self._live, self.run, self.history = live, run, history
        message = history.of_run(run.id).find_first("user_message")
        self._seed, self._goal = (message.id, message.text) if message else (run.id, "")
        self.context = create_context(
            run,
            history,
            message=message,
            parent=parent,
            workspace=dependencies.workspace,
            run_sub_agent=self._run_sub_agent,
            tokens=dependencies.history_tokens,
        )
        self.recorder = Recorder(self._database, live, self.context)
        self._continue_from(history)
        self._notes_of_directory = ""
        self._steered: list[tuple[int, list[Any]]] = []  # of an SDK run: where messages were inserted
        self._replays: Replays = {}
        self._tool_started_at = 0.0
        self._model: ChatModel | None = None
        self.left_out: int | None = None
        """The number up to which the model has not read the conversation, as it is too long."""
        self.ending: Ending | None = None
        self.follow_up: StartedRun | None = None
        """The run that answers the next message in the queue, if there is one when this run completes."""

    # The loop

    async def execute(self) -> ExecutionState:
        """Executes the run until it has ended or waits; what was shown is stored in any case.

        Errors, stops and cancellation become the run's outcome. A lost lease does not: the outcome that another process
        stored is read.
        """
        try:
            return await self._run_until_end_or_wait()
        except asyncio.CancelledError:
            await self._finish(self._live.ending or Ending("interrupted", "interrupted"))
        except Exception as error:  # noqa: BLE001 - the edge of a run: it ends with an outcome
            if any(isinstance(cause, LeaseLost) for cause in causes_of(error)):
                await self.recorder.read_outcome()
            else:
                await self._finish(self._live.ending or get_ending(error, self.run.id))
        return "ended"

    async def _run_until_end_or_wait(self) -> ExecutionState:
        workspace, tokens = self._dependencies.workspace, self._dependencies.history_tokens
        is_new = not self.recorder.model_turn
        self._notes_of_directory = await prepare_folder(self.context, workspace, is_new=is_new, tokens=tokens)
        while True:
            waiting = {call.id for call in self._waiting_calls} | self.context.waiting_agents
            if ready := [call for call in self.context.open_calls.values() if call.id not in waiting]:
                await self._live.run_until_stopped(self._make_calls(ready), self._wait_for_tool)
            if self._waiting_calls or self.context.waiting_agents:
                if await self._wait_for_approvals():
                    return "waiting"
                await self._load_history()
                continue
            await self._run_agent()
            if self.context.open_calls or await self._withdraw_claim():
                continue
            if await self._complete():
                return "ended"

    async def _load_history(self) -> None:
        if self.run.is_sub_agent:
            self.history = await sub_agents.load_run(self._database, self.run)
        else:
            self.history = await load_history(self._database, self.run.user_id, self.run.conversation_id)
        self._continue_from(self.history)

    def _continue_from(self, history: Timeline) -> None:
        self._messages_read = len(self._live.messages)  # the history has them
        self.recorder.continue_from(history.of_run(self.run.id))
        self._calls_made = count_calls(self.recorder.calls)

    async def _wait_for_tool(self, working: asyncio.Task[object]) -> None:
        """Waits for the tool that is at work, as long as a stop may wait; no other one begins.

        A sub-agent stops by itself; its command is killed, and returns the output so far.
        """
        context, workspace, now = self.context, self._dependencies.workspace, asyncio.get_running_loop().time
        tools = [call.tool for call in context.calls_at_work]
        has_sub_agent = any(find_tool(tool).agent for tool in tools)
        is_connector = any(server_of(tool) is not None for tool in tools)
        may_be_queued = any(find_tool(tool).runs_programs for tool in tools)
        began = now()
        while context.calls_at_work and not working.done():
            is_short = is_connector or may_be_queued
            seconds = _SHORT_SECONDS if is_short else self._dependencies.tool_wait_seconds
            if not has_sub_agent and now() - began >= seconds:
                break
            if self.run.is_sub_agent and workspace is not None:
                is_queued = not await workspace.stop(context.folder, user_id=context.user_id)
                may_be_queued = may_be_queued and is_queued
            await asyncio.wait({working}, timeout=_LOOK_SECONDS)

    # One run of the SDK

    async def _run_agent(self) -> None:
        if self.recorder.is_changed:
            await self._load_history()
        agent, tokens = self._dependencies.agents[self.run.agent], self._dependencies.history_tokens
        assert isinstance(agent.model, ChatModel)
        recorder, notes = self.recorder, self._notes_of_directory
        window = await choose_history(self._database, self.run, self.history, notes=notes, tokens=tokens)
        self.left_out = window.left_out
        before, name = window.count_tokens_before(self.run.id), self.run.options.get("model")
        model = agent.model.for_run(
            name,
            recorder.read_piece,
            goal=self._goal,
            history_tokens=before,
            on_progress=recorder.publish_progress,
            on_usage=recorder.count_usage,
        )
        self._model = model
        recorder.model_name = model.name
        temperature = None if self.run.is_sub_agent else self.run.options.get("temperature")
        config = RunConfig(
            model=model,
            model_settings=ModelSettings(
                temperature=temperature, retry=model.retry_settings(recorder.publish_progress)
            ),
            tracing_disabled=True,
            tool_not_found_behavior="return_error_to_model",
            # In the order in which the model wrote them; and none is made after a sub-agent that waits.
            tool_execution=ToolExecutionConfig(max_function_tool_concurrency=1),
            call_model_input_filter=partial(self._prepare_input, head=window.head),
        )
        self._steered, self._replays = [], find_replays(self.history)
        # Its model turns are counted by `_count_model_turn`, as a run may need several runs of the SDK.
        max_turns = MAX_MODEL_TURNS + self._dependencies.agent_model_turns
        items, context = window.render(), self.context
        work = Runner.run(agent, items, context=context, hooks=self, max_turns=max_turns, run_config=config)
        await self._live.run_until_stopped(work, self._wait_for_tool)

    async def _prepare_input(self, data: CallModelData[Any], *, head: int) -> ModelInputData:
        """Returns the input of the next request, shortened to the budget; the first `head` items stay.

        Steering messages are inserted where the model read them first: each request begins as the one before. Raises
        what `_count_model_turn` does, and `RunError` if the user's model tokens of today are used up.
        """
        await self._live.wait_if_stopped()
        if not self._has_tokens:
            raise RunError("tokens_used_up", most=self._dependencies.limits.tokens_per_day)
        items = list(data.model_data.input)
        if entries := await self._read_messages():
            self._steered.append((len(items), render_input(Timeline([*entries]))))
        for position, messages in reversed(self._steered):
            items[position:position] = messages
        self._count_model_turn()
        items = [add_replay(sanitize_item(item), self._replays) for item in items]
        items = fit(items, tokens=self._dependencies.history_tokens, head=head)
        return ModelInputData(items, data.model_data.instructions)

    async def _read_messages(self) -> Sequence[Entry]:
        """Returns the steering messages that this run's model has not read; all runs of the tree read them."""
        live = self._live
        if live.has_messages:
            live.has_messages = False
            await self.recorder.take_messages()
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

    async def on_llm_start(
        self,
        context: RunContextWrapper[RunContext],
        agent: Agent[RunContext],
        system_prompt: str | None,
        input_items: list[Any],
    ) -> None:
        """Stores also outputs that the SDK has made itself, as of a tool that does not exist."""
        self.recorder.start_model_turn()
        outputs = {
            item["call_id"]: item["output"] for item in input_items if item.get("type") == "function_call_output"
        }
        open_calls, begun = self.context.open_calls.values(), self.context.begun
        missed = [call for call in open_calls if call.id in outputs and call.id not in begun]
        for call in missed:
            call.output, call.state = get_text(outputs[call.id]), "failed"
        if missed:
            await self.recorder.store(missed)
        await self._live.wait_if_stopped()

    async def on_llm_end(
        self, context: RunContextWrapper[RunContext], agent: Agent[RunContext], response: ModelResponse
    ) -> None:
        """Stores a model turn before its calls are made; one without calls is stored with the outcome of the run."""
        turn, entries = self.recorder.end_model_turn()
        items = [item for item in response.output if isinstance(item, ResponseFunctionToolCall)]
        if not items:
            self.recorder.unstored += [turn, *entries]
            return
        if turn.replay is not None:
            self._replays[items[0].call_id] = render_replay(turn)
        calls = create_calls(items, turn, seed=self._seed, made=self._calls_made)
        limit_calls(calls, turn, max_tokens=agent.model_settings.max_tokens)
        await self._decide_calls(calls)
        await self.recorder.store([*entries, turn, *calls])

    async def _decide_calls(self, calls: Sequence[ToolCall]) -> None:
        """Notes which calls of a model turn wait for approval, and which are not made."""
        context, recorder, approvals = self.context, self.recorder, self._dependencies.approvals
        to_make = [call for call in calls if call.reason is None]
        context.waiting = await approvals.find_waiting(self.run, to_make, recorder.calls, context.directory)
        context.not_made = {call.id: output_of(call) for call in calls if call.reason}
        for call in calls:
            call.reach = approvals.policy.reach_of(call.tool)
            # From here on it may have been made, unless it waits: no statement of its own says that it begins.
            call.state = "running"
            if call.id in context.waiting:
                call.state, call.approval_text = "requested", ""
        recorder.calls += calls
        context.begun.clear()
        context.open_calls = {call.id: call for call in calls}

    async def on_tool_start(self, context: RunContextWrapper[RunContext], agent: Agent[RunContext], tool: Tool) -> None:
        """After a stop it never returns, so that the tool does not begin."""
        assert isinstance(context, ToolContext)
        await self._live.wait_if_stopped()
        self.context.begun.add(context.tool_call_id)
        self._tool_started_at = time.monotonic()

    async def on_tool_end(
        self, context: RunContextWrapper[RunContext], agent: Agent[RunContext], tool: Tool, result: Any
    ) -> None:
        """Stores the result, which also tells whether the user has sent a message or requested a stop.

        Then comes the next call of the model turn, or `_prepare_input`.
        """
        assert isinstance(context, ToolContext)
        assert context.tool_call is not None
        call = self.context.open_calls[context.tool_call_id]
        if call.id in self.context.waiting_agents:
            return
        if call.reason is None:
            add_result(call, context.tool_call, result, time.monotonic() - self._tool_started_at)
        else:
            call.state = "not_made"
        await self.recorder.store([call])

    # Approvals

    @property
    def _waiting_calls(self) -> list[ToolCall]:
        """The open calls that wait for approval, or will once `_wait_for_approvals` has stored that."""
        waiting = self.context.waiting
        calls = self.context.open_calls.values()
        return [call for call in calls if call.id in waiting or call.state == "awaiting_approval"]

    async def _wait_for_approvals(self) -> bool:
        """Stores that the tree of runs waits for approvals and publishes the requests, so that any process can continue
        it. Returns false if all were decided already. Raises `CancelledError` if the run is to stop.
        """
        context, waiting = self.context, self._waiting_calls
        for call in waiting:
            call.approval_text = await self._dependencies.approvals.describe(self.run, call, context.directory)
            call.state = "awaiting_approval"
        await self._read_changes()
        open_calls = context.open_calls.values()
        later = [call for call in open_calls if call.state == "running" and call.id not in context.begun]
        waits = await self.recorder.store_wait(waiting, later)
        asked = len(waiting) + len(context.waiting_agents)
        context.waiting, context.waiting_agents = set(), set()
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

    async def _make_calls(self, calls: Sequence[ToolCall]) -> None:
        """Makes the calls that a run has left open when it waited, one after another until a stop, as the SDK would."""
        agent = self._dependencies.agents[self.run.agent]
        wrapper = RunContextWrapper(context=self.context)
        # Its own tools also where they are not enabled any more: what was approved does not depend on that.
        tools = {tool.name: tool for tool in [*agent.tools, *await agent.get_all_tools(wrapper)]}
        for call in calls:
            if self._live.stop_requested.is_set():
                return
            tool = tools.get(call.tool)
            if self._dependencies.approvals.has_reach_changed(call):
                call.state, call.reason = "not_made", "reach_changed"
                await self.recorder.store([call])
            elif not isinstance(tool, FunctionTool):
                call.output, call.state = f"Tool {call.tool!r} not found.", "failed"
                await self.recorder.store([call])
            else:
                item = ResponseFunctionToolCall(
                    type="function_call", call_id=call.id, name=call.tool, arguments=call.arguments
                )
                of_call = ToolContext.from_agent_context(wrapper, call.id, item, agent)
                if call.state != "running":
                    await self.recorder.begin_call(call)
                await self.on_tool_start(of_call, agent, tool)
                output = await tool.on_invoke_tool(of_call, call.arguments)
                await self.on_tool_end(of_call, agent, tool, output)

    # Sub-agents

    async def _run_sub_agent(self, call_id: str, assignment: Assignment, agent: str) -> str:
        """Executes or continues the run of a tool call; returns what the assistant reads, or raises what ends both."""
        call, run = self.context.open_calls[call_id], await sub_agents.find(self._database, self.run, call_id)
        was_started = run is None
        if run is None and (run := await self._start_sub_agent(call_id, assignment, agent)) is None:
            return OVER_LIMIT.format(most=self._dependencies.sub_agents_per_day)
        history = await sub_agents.load_run(self._database, run)
        execution = Execution(self._dependencies, self._live, run, history, parent=self.context)
        code = None if was_started else find_reason_to_end(call, run, history, self._dependencies.approvals)
        if code is not None:
            await execution.end_waiting(code)
        elif await execution.execute() == "waiting":
            self.context.waiting_agents.add(call_id)
            return ""
        if self._live.stop_requested.is_set():
            raise RunError("cancelled")  # it ends as its tree of runs does
        if run.status == "interrupted":
            raise LeaseLost
        if run.status == "failed" and run.error_code not in _ERRORS_FOR_PARENT:
            raise RunError(run.error_code or "failed", **((execution.ending and execution.ending.values) or {}))
        return render_result(run, await sub_agents.load_run(self._database, run))

    async def _start_sub_agent(self, call_id: str, assignment: Assignment, agent: str) -> Run | None:
        details = {"task_id": assignment.task_id, "time_zone": self.context.time_zone}
        most = self._dependencies.sub_agents_per_day
        async with self._live.lock:
            started = await sub_agents.start(
                self._database, self.run, call_id, agent, storable(assignment.task), details, per_day=most
            )
        if started is None:
            return None
        run, entry = started
        self._live.stream.append(Event("entry_completed", entry, entry.last_seq, run=run))
        return run

    async def end_waiting(self, code: str | None) -> None:
        """Cancels a sub-agent that waited, without another request to its model; `code` is why."""
        await self._finish(Ending("cancelled", code if code in ("other_message", "reach_changed") else "cancelled"))

    async def _end_sub_agents(self, ending: Ending) -> None:
        """Cancels the sub-agents that wait, or were to go on, as their run ends."""
        for call in [call for call in self.context.open_calls.values() if find_tool(call.tool).agent]:
            run = await sub_agents.find(self._database, self.run, call.id)
            if run is not None and run.status == "running":
                history = await sub_agents.load_run(self._database, run)
                await Execution(self._dependencies, self._live, run, history).end_waiting(ending.error_code)

    # The outcome

    async def _read_changes(self, records: Sequence[EventRecord] = ()) -> None:
        """Reads what the top run has changed, if it may have: sub-agents change no tasks. Its last `records` may have
        an answer.
        """
        recorder = self.recorder
        if not self.run.is_sub_agent and may_have_changed_tasks(recorder.calls, self.context.unconfirmed):
            recorder.changes = await read_changes(self._dependencies.tools, self.run.user_id, self.run.id)
            texts = [one.text for one in records if isinstance(one, Entry) and one.kind == "assistant_message"]
            await add_named(recorder.changes, recorder.calls, "\n".join(texts))

    async def _withdraw_claim(self) -> bool:
        """Withdraws an answer that claims a change which was not made, so that the model answers once more.

        Returns whether it did. A claim that stays, as a run withdraws one answer at most, is noted in the recorder.
        """
        recorder, history = self.recorder, self.history
        if self._live.stop_requested.is_set():
            return False
        has_claim = partial(has_false_claim, self._database, self.run, recorder.calls, history=history)
        withdrawn = history.of_run(self.run.id).find_first("withdrawn")
        recorder.has_false_claim = await has_claim(recorder.answer)
        if not recorder.has_false_claim:
            # A text above calls stays, as the model has gone on from it. A sub-agent hands over its answer only.
            earlier = "" if self.run.is_sub_agent else "\n".join(recorder.earlier_answers)
            recorder.has_false_claim = await has_claim(earlier)
            if withdrawn is not None and not any(map(may_have_changed, recorder.calls)):
                self._judge_second_answer()
            return False
        if withdrawn is not None or self._was_steered or not (self._has_model_turns and self._has_tokens):
            return False
        return await recorder.withdraw_answer()

    def _judge_second_answer(self) -> None:
        """Notes in the recorder an answer after a withdrawn one that does not say that nothing was changed.

        If it says so, a call was missed. A model that repeats itself may have told the truth.
        """
        if not admits_failure(self.recorder.answer):
            self.recorder.has_false_claim = True
        elif not self.recorder.calls and self._model is not None:
            self._model.record_missed_call("claimed a change without a call")

    @property
    def _was_steered(self) -> bool:
        """Whether the user has written to the tree of runs since its message."""
        messages = [entry for entry in self.history.of_run(self.run.top_run_id).entries if entry.kind == "user_message"]
        return bool(self._live.messages) or len(messages) > 1

    @property
    def _has_tokens(self) -> bool:
        return self._dependencies.limits.allow_tokens(self._live.tokens_used)

    @property
    def _has_model_turns(self) -> bool:
        if self.run.is_sub_agent:
            return self._live.agent_model_turns_left > 0
        return self.recorder.model_turn < MAX_MODEL_TURNS

    async def _complete(self) -> bool:
        """Ends a run whose model has answered. Returns false if the run goes on, as it has messages to read.

        A queued message that is to be answered afterwards starts the `follow_up`.
        """
        if await self._finish(Ending("completed")):
            return True
        changes = self.recorder.changes
        self.follow_up = await steering.start_follow_up(self._database, self.run, changes=changes)
        if self.follow_up is None:
            self._live.has_messages = True
            return False
        self.recorder.publish_changes()
        await self.recorder.read_outcome()
        self.run.next_run_id = self.follow_up.run.id
        self.recorder.measure_end()
        return True

    async def _finish(self, ending: Ending) -> bool:
        """Stores the outcome of the run with all that is not stored yet, publishes both, and retries while the database
        is away. Returns false if the run has messages to read first, and true without storing anything if the lease is
        lost.
        """
        self.ending, records = self.recorder.close(ending)
        await self._read_changes(records)
        may_be_stored = False
        while True:
            try:
                await self._end_sub_agents(self.ending)
                if await self.recorder.store(records, self.ending.outcome):
                    self.recorder.measure_end()
                    return True
                if self._live.stop_requested.is_set():  # what the user stops answers nothing more
                    return await self._finish(self._live.ending or Ending("cancelled", "cancelled"))
                return False
            except DatabaseUnavailable:  # the lease lasts as long as the process
                may_be_stored = True
                await asyncio.sleep(_RETRY_SECONDS)
            except LeaseLost:  # or the response to an earlier COMMIT was lost
                await self.recorder.read_outcome()
                if may_be_stored and self.run.status == self.ending.outcome:
                    self.recorder.measure_end()
                return True
