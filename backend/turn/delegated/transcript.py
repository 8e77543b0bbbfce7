"""What an agent has done for a call of the assistant's: as its model reads it, and as its person is shown it."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from openai.types.responses import ResponseFunctionToolCall

from backend.conversation.agents.steps import Step
from backend.conversation.items import Json, Work
from backend.model.tool_calls import storable
from backend.tools.workspace import shown
from backend.turn.calls import MOST_CALLS, as_stored, canonical

_LONGEST = 8_192  # bytes of what the assistant's model reads

Shown = tuple[int, Json]
"""A step as it is shown, and its place."""


@dataclass(eq=False)
class Transcript:
    """`open` are the calls of its newest step whose output is not written yet, `files` what it wrote, with the sizes.

    `items` are what its model said and read since its opening. What changes is shown in `work`, and returned.
    """

    agent: str
    folder_url: str = ""
    work: Work = field(default_factory=Work)
    open: dict[str, ResponseFunctionToolCall] = field(default_factory=dict[str, ResponseFunctionToolCall])
    begun: set[str] = field(default_factory=set[str])
    files: dict[str, int | None] = field(default_factory=dict[str, int | None])
    items: list[Any] = field(default_factory=list[Any])

    def __post_init__(self) -> None:
        self.work.agent = self.agent
        self._numbers: dict[str, int] = {}  # of a call, where it is shown
        self._made: Counter[tuple[str, str]] = Counter()

    def begin(self, task: str) -> Shown:
        title = f"{self.agent.capitalize()}: {task}"
        return self._show(0, {"title": title, "content": "", "icon": "agent", "state": "none"})

    def add_step(
        self, text: str, calls: Sequence[ResponseFunctionToolCall], reasoning: Sequence[Json]
    ) -> tuple[list[Shown], dict[str, int]]:
        """What its model said; also how often it made each call before, by the call's id."""
        self.open, self.begun = {call.call_id: call for call in calls}, set()
        self.items += [*reasoning, *([_message(text)] if text else []), *map(as_stored, calls)]
        told = [self._show(len(self.work.steps), shown.said(text))] if text and calls else []
        for call in calls[:MOST_CALLS]:
            self._numbers[call.call_id] = len(self.work.steps)
            running = shown.running(call.name, call.arguments, self.folder_url)
            told.append(self._show(len(self.work.steps), {**running, "state": "none"}))
        return told, {call.call_id: self._count(call) for call in calls}

    def _count(self, call: ResponseFunctionToolCall) -> int:
        made = call.name, canonical(call.arguments)
        self._made[made] += 1
        return self._made[made] - 1

    def begin_call(self, call: ResponseFunctionToolCall) -> Shown | None:
        self.begun.add(call.call_id)
        return self._show_call(call, shown.running(call.name, call.arguments, self.folder_url))

    def answer(self, call: ResponseFunctionToolCall, text: str, details: Json | None) -> Shown | None:
        """What came of a call."""
        self._note(call, text)
        return self._show_call(call, shown.done(call.name, call.arguments, self.folder_url, text=text, details=details))

    def leave(self, call: ResponseFunctionToolCall, text: str, *, why: str) -> Shown | None:
        """A call that was not made, or not to its end."""
        self._note(call, text)
        return self._show_call(call, shown.left(call.name, call.arguments, self.folder_url, why=why))

    def _note(self, call: ResponseFunctionToolCall, text: str) -> None:
        self.items.append({"type": "function_call_output", "call_id": call.call_id, "output": text})

    def output(self, call: ResponseFunctionToolCall, text: str, details: Json | None = None) -> Json:
        """The content of its row, with where it is shown, for who unfolds it there, and what it wrote."""
        shown_at = {"work": self.work.id, "number": self._numbers.get(call.call_id)}
        self.files.update(written := shown.written(call.name, details))
        return {"call_id": call.call_id, "output": text, **shown_at, **({"files": [*written]} if written else {})}

    @property
    def stopped(self) -> list[ResponseFunctionToolCall]:
        """The calls of the newest step that the SDK left alone, in their order."""
        return [call for call_id, call in self.open.items() if call_id not in self.begun]

    def summary(self, outcome: str) -> str:
        done = sum(step["state"] == "done" for step in self.work.steps)
        counted = f"{done} step{'s' if done != 1 else ''}"
        files = f", {len(self.files)} file{'s' if len(self.files) != 1 else ''} written" if self.files else ""
        how = "" if outcome == "completed" else f", {outcome}"
        return f"{self.agent.capitalize()}: {counted}{files}{how}"

    def so_far(self) -> str:
        """The calls that ran, a line each."""
        lines = [f"- {step['title']}" for step in self.work.steps[1:] if shown.has_run(step)]
        return "\n".join(lines) or "- nothing"

    def told(self, text: str) -> str:
        """What the assistant's model reads: as much of the text as there is room for, and the files."""
        files = self._changed()
        room = _LONGEST - len(files.encode()) - 8
        given = text.encode()
        cut = text if len(given) <= room else given[:room].decode(errors="ignore") + " …"
        return f"{cut}\n\n{files}"

    def _changed(self) -> str:
        if not self.files:
            return "Files changed: none."
        sizes = {path: f" ({size:,} bytes)" if isinstance(size, int) else "" for path, size in self.files.items()}
        listed = "\n".join(f"- {path}{size}" for path, size in sizes.items())
        return f"Files changed:\n{listed}" if len(listed) < _LONGEST // 4 else f"Files changed: {len(sizes)}."

    def _show_call(self, call: ResponseFunctionToolCall, step: Json) -> Shown | None:
        number = self._numbers.get(call.call_id)
        return None if number is None else self._show(number, step)

    def _show(self, number: int, step: Json) -> Shown:
        step = clean(step)
        self.work.steps[number : number + 1] = [step]
        return number, step


def of_call(steps: Sequence[Step], call_id: str) -> Sequence[Step]:
    """Those that were made for the last call of this id."""
    own = [step for step in steps if step.call_id == call_id]
    begins = max((number for number, step in enumerate(own) if step.kind == "task"), default=0)
    return own[begins:]


def recorded(steps: Sequence[Step], works: Mapping[str, Work], folder_url: str = "") -> Transcript:
    """What these rows of one call tell; of `works`, by their ids, it has the one that is shown."""
    task, *others = steps
    did = Transcript(task.agent, folder_url)
    did.begin(task.content["task"])
    for step in others:
        match step.content:
            case {"text": str(text), "calls": list(calls), "reasoning": list(reasoning)}:
                did.add_step(
                    text, [ResponseFunctionToolCall(type="function_call", **call) for call in calls], reasoning
                )
            case {"call_id": str(call_id), "output": str(text)} if call_id in did.open:
                call = did.open.pop(call_id)
                did.output(call, text, step.details)
                did.answer(call, text, step.details)
            case _:
                pass
    did.work = works.get(task.content["work"], did.work)
    did.work.agent, did.work.ended = task.agent, None
    return did


def clean(value: Any) -> Any:
    """The value as PostgreSQL can hold it: programs write any bytes."""
    match value:
        case str():
            return storable(value)
        case list():
            return [clean(one) for one in value]
        case dict():
            return {storable(str(name)): clean(one) for name, one in value.items()}
        case _:
            return value


def _message(text: str) -> Json:
    """With an id it is an output message: the SDK joins the calls that follow to it."""
    parts = [{"type": "output_text", "text": text, "annotations": []}]
    return {"type": "message", "id": "said", "role": "assistant", "status": "completed", "content": parts}
