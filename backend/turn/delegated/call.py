"""One call of an agent: its steps are rows before they act, and its person sees them as they are made."""

import hashlib
import json
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from agents import ModelResponse
from agents.items import ItemHelpers, TResponseInputItem
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseReasoningItem
from sqlalchemy.ext.asyncio import AsyncEngine

from backend.conversation import statements
from backend.conversation.agents import steps
from backend.conversation.agents.steps import Kind, Step
from backend.conversation.items import Json
from backend.conversation.model_input.history import NOT_MADE, plain
from backend.errors import LeaseLost
from backend.tools.connection import Failed
from backend.tools.workspace.shown import STOPPED
from backend.tools.workspace.tools import WorkspaceTools, folder_apart
from backend.turn.calls import Calls, calls_not_made, canonical
from backend.turn.delegated.meanwhile import Meanwhile
from backend.turn.delegated.transcript import Shown, Transcript, clean
from backend.turn.log import Begun, Done, Event, Progress, Replaced, WorkedOn
from backend.turn.run import Run
from backend.turn.sdk import requests
from service.database import pipelined

_STOPPED = "This call was stopped. It may have been carried out in part: check what is there before repeating it."


class OutOfSteps(Exception):
    """An agent wants another step, and the message has no more."""


@dataclass(frozen=True)
class Means:
    """What an agent's call is recorded and shown with.

    `folder_url` is where its person opens files. Of an agent's name `works_apart` tells whether it has a folder of its
    own beside the conversation's, of calls `waiting` the ids of those about which the person is asked, and of a tool's
    name `reach_of` what it may reach now. Each agent has a `meanwhile` of its own.
    """

    engine: AsyncEngine
    run: Run
    calls: Calls
    tools: WorkspaceTools
    say: Callable[[Event], None]
    folder_url: str
    works_apart: Callable[[str], bool]
    waiting: Callable[[Sequence[ResponseFunctionToolCall]], Awaitable[frozenset[str]]]
    reach_of: Callable[[str], str | None]
    meanwhile: Callable[[], Meanwhile]


@dataclass(eq=False)
class AgentCall:
    """`call` is the assistant's; `key` is that call's. One that `goes_on` has waited, and is shown already.

    `before` is what its model has said and read before the run of the SDK's that is under way. Of the newest step, the
    calls in `waiting` are not made: their person is asked.
    """

    means: Means
    call: ResponseFunctionToolCall
    key: str
    opening: str
    did: Transcript
    goes_on: bool = False
    has_begun: bool = False
    is_over: bool = False
    before: list[Any] = field(default_factory=list[Any])
    waiting: frozenset[str] = frozenset()
    usage: Counter[str] = field(default_factory=Counter[str])

    def __post_init__(self) -> None:
        self.meanwhile = self.means.meanwhile()
        self._not_made: Mapping[str, str] = {}
        self._asked = 0.0
        self._leaving = False

    @property
    def agent(self) -> str:
        return self.did.agent

    @property
    def folder(self) -> str:
        """Where its tools work."""
        conversation = self.means.run.conversation_id
        return folder_apart(conversation, self.agent) if self.means.works_apart(self.agent) else conversation

    async def begin(self, task: Mapping[str, Any]) -> None:
        self.means.say(Begun(self.did.work))
        self._show(self.did.begin(task["task"]))
        reach = self.means.reach_of(self.call.name)
        await self._write("task", {**task, "opening": self.opening, "work": self.did.work.id, "reach": reach})

    def begin_again(self) -> None:
        """Another run of the SDK's follows, which goes on from what was said and read so far."""
        self.before = [*self.did.items]
        self.meanwhile.begin_again()

    # Its model

    async def before_model(self, items: Sequence[TResponseInputItem]) -> None:
        """Write the outputs that no hook told of, of calls of unknown tools; raises `OutOfSteps`."""
        self.has_begun = True
        for item in items:
            if "output" in item and (call := self.did.open.get(str(item.get("call_id")))) is not None:
                await self.answer(call, plain(item["output"]), {"ok": False})
        calls = self.means.calls
        if calls.steps >= calls.most_steps - 1:  # the last is the assistant's, to tell of it
            raise OutOfSteps
        calls.steps += 1
        self._asked = time.monotonic()
        self.means.say(Progress(f"The {self.agent} is thinking…"))

    async def after_model(self, response: ModelResponse, *, max_tokens: int) -> None:
        """Write what it said, and the calls that it wants made; `max_tokens` was its output limit."""
        used = response.usage
        counted = {"requests": 1, "input_tokens": used.input_tokens, "output_tokens": used.output_tokens}
        self.usage.update(counted)
        made = [item for item in response.output if isinstance(item, ResponseFunctionToolCall)]
        said = "\n".join(ItemHelpers.extract_text(item) or "" for item in response.output if _is_said(item)).strip()
        thought = [item.model_dump(exclude_unset=True) for item in response.output if _is_thought(item)]
        self._not_made = calls_not_made(made, max_tokens=max_tokens)
        self.waiting = await self.means.waiting([call for call in made if call.call_id not in self._not_made])
        told, before = self.did.add_step(said, made, thought)
        for call in made:
            self.means.calls.call_keys[call.call_id] = self._key_of(call, before[call.call_id])
        for shown in told:
            self._show(shown)
        content = {
            "text": said,
            "calls": [{"call_id": one.call_id, "name": one.name, "arguments": one.arguments} for one in made],
            "reasoning": thought,
        }
        took = requests.taken(response, model=self.means.calls.model, since=self._asked)
        await self._write("step", content, {**took, "requests": 1})

    def _key_of(self, call: ResponseFunctionToolCall, count: int) -> str:
        """Of this attempt alone: what it answered before is read, and done, anew by another."""
        parts = [self.means.run.id, self.key, call.name, canonical(call.arguments), count]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()

    # Its tools

    def refusal(self, call_id: str) -> str | None:
        """Why a call is not made, if it is not."""
        return self._not_made.get(call_id)

    def begin_call(self, call: ResponseFunctionToolCall) -> None:
        if (shown := self.did.begin_call(call)) is not None:
            self._show(shown)
            self.means.say(Progress(shown[1]["title"]))

    async def end_call(self, call: ResponseFunctionToolCall, result: Any) -> None:
        text = plain(ItemHelpers.tool_call_output_item(call, result)["output"])
        details = self._details(call)
        if call.call_id in self._not_made or isinstance(result, Failed):
            details = {"ok": False}
        if call.call_id in self.did.open:  # else its end came first
            await self.answer(call, text, details)

    def _details(self, call: ResponseFunctionToolCall) -> Json | None:
        """What its person may unfold; files in a folder that they do not open are none to them."""
        result = self.means.calls.results.pop(call.call_id, None)
        details = None if result is None else {"ok": not result[1], **(result[0] or {})}
        if details and self.folder != self.means.run.conversation_id:
            details.pop("files", None)
        return details

    @property
    def is_calling(self) -> bool:
        """Whether a call is under way, or an output is written in place of one's: a stop waits for it."""
        return self._leaving or not self.did.begun.isdisjoint(self.did.open)

    async def answer(self, call: ResponseFunctionToolCall, text: str, details: Json | None = None) -> None:
        """Write an output, and show what came of the call."""
        content = self.did.output(call, text, details)
        self._show(self.did.answer(call, text, details))
        await self._write("output", content, details)
        self.did.open.pop(call.call_id, None)

    # Its end

    async def close(self) -> None:
        """Whatever came between: each call that was written down has an output."""
        for call in [*self.did.open.values()]:
            begun = call.call_id in self.did.begun
            await self.leave(call, _STOPPED if begun else NOT_MADE, why=STOPPED if begun else "not made")

    async def leave(self, call: ResponseFunctionToolCall, text: str, *, why: str) -> None:
        """Write what is said in place of the output of a call that was not made, or not to its end."""
        self._leaving = True
        details = self._details(call) or {"ok": False}
        content = self.did.output(call, text, details)
        self._show(self.did.leave(call, text, why=why))
        await self._write("output", content, details)
        self.did.open.pop(call.call_id, None)
        self._leaving = False

    def pause(self) -> None:
        """It waits for its person: what is shown of it does not grow meanwhile."""
        if not self.goes_on:
            self.means.say(Done(self.did.work))

    async def end(self, outcome: str, text: str) -> None:
        """Write how it ended, and what the assistant reads of it."""
        self.is_over = True
        self.did.work.ended = self.did.summary(outcome)
        await self._write("end", {"outcome": outcome, "output": text})
        self.means.say(Replaced(self.did.work) if self.goes_on else Done(self.did.work))

    def _show(self, shown: Shown | None) -> None:
        if shown is None:
            return
        work = self.did.work
        number, step = shown
        self.means.say(
            Replaced(replace(work, steps=[*work.steps])) if self.goes_on else WorkedOn(work.id, number, step)
        )

    async def _write(self, kind: Kind, content: Json, details: Json | None = None) -> None:
        """A row, and what is shown by then; raises `LeaseLost`."""
        means, calls = self.means, self.means.calls
        calls.written += 1
        step = Step(
            means.run.id, self.call.call_id, calls.written, self.agent, kind, clean(content), details=clean(details)
        )
        async with pipelined(means.engine, means.run.user_id) as pipeline:
            added = await steps.add(pipeline, means.run.conversation_id, step, means.run.acting)
            await statements.send_items(pipeline, means.run.conversation_id, [self.did.work], means.run.acting)
        if await added.fetchone() is None:
            raise LeaseLost


def _is_said(item: Any) -> bool:
    return isinstance(item, ResponseOutputMessage)


def _is_thought(item: Any) -> bool:
    return isinstance(item, ResponseReasoningItem)
