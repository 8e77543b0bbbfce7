"""One call of an agent: its steps are rows before they act, and its person sees them as they are made."""

import hashlib
import json
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agents import ModelResponse
from agents.items import ItemHelpers, TResponseInputItem
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseReasoningItem
from sqlalchemy.ext.asyncio import AsyncEngine

from backend.conversation import statements
from backend.conversation.agents import steps
from backend.conversation.agents.steps import Kind, Step
from backend.conversation.errors import LeaseLost
from backend.conversation.items import Json, Work
from backend.conversation.model_input.history import NOT_MADE, plain
from backend.model.repairs import storable
from backend.tools.workspace import shown
from backend.tools.workspace.tools import WorkspaceTools
from backend.turn.log import Begun, Done, Event, Progress, WorkedOn
from backend.turn.recorder import Calls, canonical
from backend.turn.run import Run
from service.database import pipelined

MOST_CALLS = 6  # that are made of one answer of an agent's
_TOO_MANY = (
    f"This call was not made: of one answer at most {MOST_CALLS} calls are. Make it again if it is still needed."
)
_STOPPED = "This call was stopped. It may have been carried out in part: check what is there before repeating it."


class OutOfSteps(Exception):
    """An agent wants another step, and the message has no more."""


@dataclass(frozen=True)
class Means:
    """What an agent's call is recorded and shown with.

    `folder_url` is where its person opens files. Of an agent's name `works_apart` tells whether it has a folder of its
    own beside the conversation's.
    """

    engine: AsyncEngine
    run: Run
    calls: Calls
    tools: WorkspaceTools
    say: Callable[[Event], None]
    folder_url: str
    works_apart: Callable[[str], bool]


@dataclass(eq=False)
class AgentCall:
    """`call` is the assistant's; `key` is that call's."""

    means: Means
    agent: str
    call: ResponseFunctionToolCall
    key: str
    opening: str
    has_begun: bool = False
    is_over: bool = False
    usage: Counter[str] = field(default_factory=Counter[str])
    files: dict[str, int | None] = field(default_factory=dict[str, int | None])

    def __post_init__(self) -> None:
        self.work = Work(agent=self.agent)
        self._open: dict[str, ResponseFunctionToolCall] = {}  # of the newest step, without an output yet
        self._begun: set[str] = set()
        self._too_many: frozenset[str] = frozenset()
        self._made: Counter[tuple[str, str]] = Counter()
        self._numbers: dict[str, int] = {}  # of a call, where it is shown
        self._asked = 0.0

    @property
    def folder(self) -> str:
        """Where its tools work."""
        conversation = self.means.run.conversation_id
        return f"{conversation}.{self.agent}" if self.means.works_apart(self.agent) else conversation

    async def begin(self, task: Mapping[str, Any]) -> None:
        self.means.say(Begun(self.work))
        title = f"{self.agent.capitalize()}: {task['task']}"
        self._show(0, {"title": title, "content": "", "icon": "agent", "state": "none"})
        await self._write("task", {**task, "opening": self.opening})

    # Its model

    async def before_model(self, items: Sequence[TResponseInputItem]) -> None:
        """Write the outputs that no hook told of, of calls of unknown tools; raises `OutOfSteps`."""
        self.has_begun = True
        for item in items:
            if "output" in item and (call := self._open.get(str(item.get("call_id")))) is not None:
                await self._answer(call, plain(item["output"]), {"ok": False})
        calls = self.means.calls
        if calls.steps >= calls.most_steps - 1:  # the last is the assistant's, to tell of it
            raise OutOfSteps
        calls.steps += 1
        self._asked = time.monotonic()
        self.means.say(Progress(f"The {self.agent} thinks…"))

    async def after_model(self, response: ModelResponse) -> None:
        """Write what it said, and the calls that it wants made."""
        used = response.usage
        counted = {"requests": 1, "input_tokens": used.input_tokens, "output_tokens": used.output_tokens}
        self.usage.update(counted)
        made = [item for item in response.output if isinstance(item, ResponseFunctionToolCall)]
        said = "\n".join(ItemHelpers.extract_text(item) or "" for item in response.output if _is_said(item)).strip()
        self._open, self._begun = {call.call_id: call for call in made}, set()
        self._too_many = frozenset(call.call_id for call in made[MOST_CALLS:])
        for call in made:
            self.means.calls.call_keys[call.call_id] = self._key_of(call)
        if said and made:
            self._show(len(self.work.steps), shown.said(said))
        for call in made[:MOST_CALLS]:
            self._numbers[call.call_id] = len(self.work.steps)
            running = shown.running(call.name, call.arguments, self.means.folder_url)
            self._show(len(self.work.steps), {**running, "state": "none"})
        content = {
            "text": said,
            "calls": [{"call_id": one.call_id, "name": one.name, "arguments": one.arguments} for one in made],
            "reasoning": [item.model_dump(exclude_unset=True) for item in response.output if _is_thought(item)],
        }
        await self._write("step", content, {**counted, "seconds": round(time.monotonic() - self._asked, 3)})

    def _key_of(self, call: ResponseFunctionToolCall) -> str:
        """Of this attempt alone: what it answered before is read, and done, anew by another."""
        arguments = canonical(call.arguments)
        count = self._made[call.name, arguments]
        self._made[call.name, arguments] += 1
        parts = [self.means.run.id, self.key, call.name, arguments, count]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()

    # Its tools

    def refusal(self, call_id: str) -> str | None:
        """Why a call is not made, if it is not."""
        return _TOO_MANY if call_id in self._too_many else None

    def begin_call(self, call: ResponseFunctionToolCall) -> None:
        self._begun.add(call.call_id)
        if (number := self._numbers.get(call.call_id)) is not None:
            running = shown.running(call.name, call.arguments, self.means.folder_url)
            self._show(number, running)
            self.means.say(Progress(running["title"]))

    async def end_call(self, call: ResponseFunctionToolCall, result: Any) -> None:
        text = plain(ItemHelpers.tool_call_output_item(call, result)["output"])
        details = self.means.tools.details(self.means.calls.call_keys[call.call_id])
        if call.call_id in self._too_many:
            details = {"ok": False}
        if call.call_id in self._open:  # else its end came first
            await self._answer(call, text, details)

    @property
    def is_calling(self) -> bool:
        """Whether a call is under way."""
        return not self._begun.isdisjoint(self._open)

    async def _answer(self, call: ResponseFunctionToolCall, text: str, details: Json | None) -> None:
        """Write an output, and show what came of the call."""
        self._note_file(call, details)
        if (number := self._numbers.get(call.call_id)) is not None:
            url = self.means.folder_url
            self._show(number, shown.done(call.name, call.arguments, url, text=text, details=details))
        await self._write("output", self._output(call, text), details)
        self._open.pop(call.call_id, None)

    def _note_file(self, call: ResponseFunctionToolCall, details: Json | None) -> None:
        if call.name in shown.WRITING and (details or {}).get("ok", False):
            path = str(json.loads(call.arguments).get("path", "")).removeprefix("./")
            self.files[path] = (details or {}).get("bytes")

    # Its end

    async def close(self) -> None:
        """Whatever came between: each call that was written down has an output."""
        for call in [*self._open.values()]:
            await self._leave(call, _STOPPED if call.call_id in self._begun else NOT_MADE)

    async def _leave(self, call: ResponseFunctionToolCall, text: str) -> None:
        self._open.pop(call.call_id, None)
        details = self.means.tools.details(self.means.calls.call_keys[call.call_id])
        begun = call.call_id in self._begun
        if (number := self._numbers.get(call.call_id)) is not None:
            why = "stopped" if begun else "not made"
            self._show(number, shown.left(call.name, call.arguments, self.means.folder_url, why=why))
        await self._write("output", self._output(call, text), details)

    def _output(self, call: ResponseFunctionToolCall, text: str) -> Json:
        """With where it is shown, for who unfolds it there."""
        shown_at = {"work": self.work.id, "number": self._numbers.get(call.call_id)}
        return {"call_id": call.call_id, "output": text, **shown_at}

    async def end(self, outcome: str, text: str) -> None:
        """Write how it ended, and what the assistant reads of it."""
        self.is_over = True
        self.work.ended = self._summary(outcome)
        await self._write("end", {"outcome": outcome, "output": text})
        self.means.say(Done(self.work))

    def _summary(self, outcome: str) -> str:
        done = sum(step["state"] == "done" for step in self.work.steps)
        counted = f"{done} step{'s' if done != 1 else ''}"
        files = f", {len(self.files)} file{'s' if len(self.files) != 1 else ''} written" if self.files else ""
        how = "" if outcome == "completed" else f", {outcome}"
        return f"{self.agent.capitalize()}: {counted}{files}{how}"

    def so_far(self) -> str:
        """What it did, a line each."""
        lines = [f"- {step['title']}" for step in self.work.steps[1:] if step["title"]]
        return "\n".join(lines) or "- nothing"

    def _show(self, number: int, step: Json) -> None:
        step = _clean(step)
        self.work.steps[number : number + 1] = [step]
        self.means.say(WorkedOn(self.work.id, number, step))

    async def _write(self, kind: Kind, content: Json, details: Json | None = None) -> None:
        """A row, and what is shown by then; raises `LeaseLost`."""
        means, calls = self.means, self.means.calls
        calls.written += 1
        step = Step(
            means.run.id, self.call.call_id, calls.written, self.agent, kind, _clean(content), details=_clean(details)
        )
        async with pipelined(means.engine, means.run.user_id) as pipeline:
            added = await steps.add(pipeline, means.run.conversation_id, step, means.run.acting)
            await statements.send_items(pipeline, means.run.conversation_id, [self.work], means.run.acting)
        if await added.fetchone() is None:
            raise LeaseLost


def _is_said(item: Any) -> bool:
    return isinstance(item, ResponseOutputMessage)


def _is_thought(item: Any) -> bool:
    return isinstance(item, ResponseReasoningItem)


def _clean(value: Any) -> Any:
    """The value as PostgreSQL can hold it: programs write any bytes."""
    match value:
        case str():
            return storable(value)
        case list():
            return [_clean(one) for one in value]
        case dict():
            return {storable(str(name)): _clean(one) for name, one in value.items()}
        case _:
            return value
