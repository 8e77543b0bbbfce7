"""Tool steps, written down before they run."""

import time
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from agents import Agent, ModelResponse, RunHooks, Tool
from agents.exceptions import MaxTurnsExceeded
from agents.items import ItemHelpers, RunItem, TResponseInputItem
from agents.run_context import RunContextWrapper
from openai.types.responses import ResponseFunctionToolCall, ResponseReasoningItem

from backend.cards.task import Task
from backend.context import hidden_context as hidden
from backend.conversation.agents.steps import Step
from backend.conversation.items import Hidden, Item, Json, Widget
from backend.conversation.model_input.history import NOT_MADE, content_of, outputs_of, plain
from backend.conversation.rows import StoredItem
from backend.conversation.runs.approvals import Approval
from backend.conversation.store_adapter import PostgresStore
from backend.tools import progress, widgets
from backend.tools.progress import TaskViews
from backend.turn.calls import CallNotMade, Calls, as_stored, calls_not_made
from backend.turn.log import Answered, Called, Done, Event, Progress, Replaced, StepBegun, StepDone
from backend.turn.run import Run
from backend.turn.sdk import requests
from backend.turn.speech import Speech
from backend.turn.waiting.consent import Consent
from service.database import new_id


class Recorder(RunHooks[Calls]):
    """Writes each step before its tools run, and each output as it comes; at the end nothing is unpaired."""

    def __init__(
        self,
        store: PostgresStore,
        run: Run,
        calls: Calls,
        speech: Speech,
        say: Callable[[Event], None],
        *,
        consent: Consent,
        now: datetime | None = None,
    ) -> None:
        self.consent = consent
        self.steps = 0
        self._step_id = ""
        self._store = store
        self._conversation_id = run.conversation_id
        self._acting = run.acting
        self._calls = calls
        self._speech = speech
        self._say = say
        self._open: dict[str, ResponseFunctionToolCall] = {}  # written down, without an output yet
        self._begun: set[str] = set()
        self._held: set[str] = set()  # whose agents wait for the person: they have no output yet
        self._told: set[str] = set()  # that had begun before the run waited
        self._asked = 0.0  # when the model was asked last
        self._ending = False
        self._now = now  # by the person's wall clock, for what is overdue
        self._views = TaskViews(now, batch=calls.batch)
        self._grown = False  # what a button takes back of this answer

    async def on_llm_end(self, context: RunContextWrapper[Calls], agent: Agent[Calls], response: ModelResponse) -> None:
        """Write what the model said and the calls that it wants made, in one statement, with what the request took."""
        self._say(StepDone())
        usage = requests.taken(response, model=self._calls.model, since=self._asked)
        calls = [item for item in response.output if isinstance(item, ResponseFunctionToolCall)]
        if not calls:
            self._speech.took(usage)
            return
        not_made = self._calls.not_made = calls_not_made(calls, max_tokens=agent.model_settings.max_tokens or 0)
        self._calls.waiting = await self.consent.waiting([call for call in calls if call.call_id not in not_made])
        self._begin(calls)
        said, step = self._speech.unstored, self._step(calls, response, usage)
        self._step_id = step.id
        await self._store.write(self._conversation_id, [*said, step], self._acting)
        self._speech.stored(said)

    def _begin(self, calls: Sequence[ResponseFunctionToolCall]) -> None:
        for call in calls:
            self._calls.call_keys[call.call_id] = self._calls.key_of(call)
        self._open = {call.call_id: call for call in calls}
        self._begun.clear()
        self.steps += 1
        self._calls.made += len(calls)
        self._grown |= self._views.begin(call.name for call in calls)

    def take_up(self, rows: Sequence[StoredItem], asked: Sequence[Approval], by_agents: Sequence[Step] = ()) -> None:
        """Go on from a run's steps, as they are stored, those of its agents, and the decisions on what they asked."""
        of_agents = Counter(one.call_id for one in by_agents if one.kind == "step")
        self._calls.written = max((one.seq for one in by_agents), default=0)
        refused = {(one.step_id, one.call["call_id"]) for one in asked if one.decision == "refused"}
        outputs, answered = outputs_of(rows), False
        for row in rows:
            if row.kind == "user_message" and answered:  # said when an answer had come to its end: this is the next
                self._begin_answer(row.id)
            else:
                answered = row.kind == "assistant_message"
            if row.kind != "tool_calls" or (content := content_of(row)) is None:
                continue
            self._step_id, self._grown = row.id, False
            calls = [ResponseFunctionToolCall.model_validate(call) for call in content["calls"]]
            self._begin(calls)
            self._calls.steps += 1 + sum(of_agents.pop(call.call_id, 0) for call in calls)
            for call in calls:
                if (row.id, call.call_id) not in refused:
                    self.consent.count(call.name, call.arguments)
                if (output := outputs.get((row.id, call.call_id))) is not None:
                    self._views.take_in(call.name, call.arguments, plain(output["output"]))
                    del self._open[call.call_id]
        self._calls.call_keys |= {one.call["call_id"]: one.key for one in asked}
        self._told = self._open.keys() & {one.of_call for one in asked}

    def _begin_answer(self, message_id: str) -> None:
        self.steps, self._calls.steps, self._calls.batch = 0, 0, message_id
        self.consent.begin_answer()
        self._views = TaskViews(self._now, batch=message_id)

    @property
    def stopped(self) -> list[ResponseFunctionToolCall]:
        """The calls of the newest step that the SDK left alone, in their order."""
        return [call for call_id, call in self._open.items() if call_id not in self._begun]

    def approval(
        self,
        call: ResponseFunctionToolCall,
        text: str,
        *,
        position: int,
        at: datetime,
        agent: str | None = None,
        of_call: str | None = None,
    ) -> Approval:
        """What is asked of the person before the call is made; `text` says in words what it would do.

        It may be that of an `agent` which works for the assistant's call `of_call`.
        """
        return Approval(
            id=new_id("apr"),
            conversation_id=self._conversation_id,
            run_id=self._acting.run_id or "",
            step_id=self._step_id,
            position=position,
            call=as_stored(call),
            key=self._calls.call_keys[call.call_id],
            text=text,
            item_id=new_id("wid"),
            created_at=at,
            agent=agent,
            of_call=of_call,
            reach=self.consent.reach_of(call.name),
        )

    def leave(self, asked: Sequence[Approval]) -> None:
        """These calls stay without an output: they wait, or agents that work for them."""
        for approval in asked:
            self._open.pop(approval.of_call or approval.call["call_id"], None)

    def hold(self, call_id: str) -> None:
        """Record no output of this call, whatever it returns: its agent waits."""
        self._held.add(call_id)

    async def answer(self, call: ResponseFunctionToolCall, text: str) -> None:
        """Record what is said in place of a tool's output."""
        self._held.discard(call.call_id)
        await self._record([ItemHelpers.tool_call_output_item(call, text)])

    async def on_tool_start(self, context: RunContextWrapper[Calls], agent: Agent[Calls], tool: Tool) -> None:
        call = _call_of(context)
        if self._ending:
            raise CallNotMade
        self._begun.add(call.call_id)
        if call.call_id not in self._told:
            self._say(Called(call.call_id, tool.name, call.arguments))
        self._tell(progress.running(tool.name, call.arguments))

    async def on_tool_end(
        self, context: RunContextWrapper[Calls], agent: Agent[Calls], tool: Tool, result: Any
    ) -> None:
        call = _call_of(context)
        if call.call_id in self._held:
            return
        output = ItemHelpers.tool_call_output_item(call, result)
        text = plain(output["output"])
        items = [widgets.item(root) for root in self._views.cards(tool.name, call.arguments, text)]
        await self._record([output], items)
        self._say(Answered(call.call_id, tool.name, text))
        self._views.take_in(tool.name, call.arguments, text)
        self._tell(progress.done(tool.name, call.arguments, text), done=True)
        for item in items:
            self._say(Done(item))
        if (tasks := progress.changed_tasks(tool.name, text)) or self._grown:
            await self._redraw(tasks)

    async def _redraw(self, tasks: Sequence[Task]) -> None:
        """Let the widgets that are shown already follow a change."""

        def redrawn(shown: Widget) -> Widget | None:
            drawn = widgets.redrawn(shown, tasks, now=self._now)
            return (grown and widgets.with_all_undone(drawn or shown, grown)) or drawn

        grown, self._grown = self._calls.batch if self._grown else None, False
        for item in await self._store.redraw(self._conversation_id, redrawn, self._acting):
            self._say(Replaced(item))

    def final_list(self, answer: str) -> Widget | None:
        """The list, when the turn was about it: below an answer that lists tasks itself, only those."""
        found = self._views.final(answer)
        return widgets.item(found) if found else None

    def _tell(self, line: str | None, *, done: bool = False) -> None:
        if line is not None:
            self._say(Progress(line, done))

    async def on_llm_start(
        self,
        context: RunContextWrapper[Calls],
        agent: Agent[Calls],
        system_prompt: str | None,
        input_items: list[TResponseInputItem],
    ) -> None:
        await self.read(input_items)
        if self._calls.steps >= self._calls.most_steps:
            raise MaxTurnsExceeded(f"{self._calls.most_steps} steps")
        self._calls.steps += 1
        self._calls.asked = _last_said(input_items)
        self._say(StepBegun())
        self._asked = time.monotonic()

    async def read(self, items: list[Any]) -> None:
        """Write the outputs in the model's input that no hook told of.

        Calls that ran no tool (unknown name, refused) have an output too, made by the SDK.
        """
        await self._record(items)

    async def take(self, items: list[RunItem]) -> None:
        """Record the outputs that no hook told of."""
        await self._record([item.to_input_item() for item in items if item.type == "tool_call_output_item"])

    async def finish(self) -> None:
        """Record which calls were never begun."""
        await self._record([ItemHelpers.tool_call_output_item(call, NOT_MADE) for call in self.stopped])

    def end(self) -> bool:
        """Let no further call begin; returns whether one is under way."""
        self._ending = True
        return not self._open.keys().isdisjoint(self._begun - self._held)

    async def _record(self, items: list[Any], shown: Sequence[Item] = ()) -> None:
        """Write the outputs that are not there yet, and with them what is shown of them."""
        ours = self._open.keys() - self._held
        outputs = [item for item in items if item.get("call_id") in ours and "output" in item]
        if not outputs:
            return
        rows: list[Item] = [Hidden(content={"kind": "tool_output", "output": output}) for output in outputs]
        await self._store.write(self._conversation_id, [*rows, *shown], self._acting)
        for output in outputs:
            self._open.pop(output["call_id"], None)

    def _step(self, calls: list[ResponseFunctionToolCall], response: ModelResponse, usage: Json) -> Hidden:
        reasoning = [
            item.model_dump(exclude_unset=True) for item in response.output if isinstance(item, ResponseReasoningItem)
        ]
        content = {"kind": "tool_calls", "calls": [as_stored(call) for call in calls], "reasoning": reasoning}
        return Hidden(content=content, usage=usage)


def _call_of(context: RunContextWrapper[Calls]) -> ResponseFunctionToolCall:
    return context.tool_call  # pyright: ignore[reportAttributeAccessIssue] - hooks of a tool are given its ToolContext


def _last_said(items: Sequence[Any]) -> str:
    """What the person wrote last, of what a model reads."""
    said = (item["content"] for item in reversed(items) if item.get("role") == "user")
    return next((text for text in said if isinstance(text, str) and not hidden.is_block(text)), "")
