"""Rows of a conversation → what the model reads, the same for the same rows every time."""

import json
import logging
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Literal

from agents.items import TResponseInputItem
from chatkit.agents import ThreadItemConverter
from chatkit.types import (
    AssistantMessageItem,
    HiddenContextItem,
    UserMessageItem,
    UserMessageTagContent,
)
from openai.types.responses import ResponseFunctionToolCall
from pydantic import BaseModel, ValidationError

from backend.rows import ONLY_SHOWN, THREAD_ITEM, StoredItem
from database import new_id, utc_now

logger = logging.getLogger(__name__)

UNKNOWN_OUTCOME = (
    "The outcome of this call is unknown: it may have been carried out. Check with list_tasks before repeating it."
)
NOTE = "Hidden context for the agent (not shown to the user):\n<HiddenContext>\n{}\n</HiddenContext>"

_CALLS_IN_A_NOTE = 50
_CHARS_IN_A_NOTE = 200  # of a call, and of its outcome


class _Reasoning(BaseModel):
    type: Literal["reasoning"]
    summary: list[dict[str, Any]]


class _ToolCalls(BaseModel):
    calls: list[ResponseFunctionToolCall]
    reasoning: list[_Reasoning]


class _Output(BaseModel):
    call_id: str
    output: str | list[dict[str, Any]]


class _ToolOutput(BaseModel):
    output: _Output


class _Note(BaseModel):
    text: str
    attempted: list[tuple[str, str]] = []


_CONTENTS: dict[str, type[BaseModel]] = {
    "tool_calls": _ToolCalls,
    "tool_output": _ToolOutput,
    "note": _Note,
    "change": _Note,
}


def content_of(row: StoredItem) -> dict[str, Any] | None:
    """The content of a row of calls, an output or a note, or None when it is not as this version writes it."""
    content = row.item.get("content")
    try:
        _CONTENTS[row.kind].model_validate(content)
    except ValidationError:
        logger.warning("item %s of kind %s is not read: its content is unknown to this version", row.id, row.kind)
        return None
    return content


async def to_model_input(rows: Iterable[StoredItem]) -> list[TResponseInputItem]:
    """The model's input for these rows: calls paired with their outputs, nothing that is only for the page."""
    rows = list(rows)
    outputs = _outputs(rows)
    converter = _Converter()
    items: list[Any] = []
    for row in rows:
        match row.kind:
            case "tool_calls":
                items.extend(_step(row, outputs))
            case "note" | "change":
                if content := content_of(row):
                    items.append({"role": "user", "content": NOTE.format(content["text"])})
            case "tool_output":
                pass
            case kind if kind not in ONLY_SHOWN:
                items.extend(await converter.convert(row))
    return items


def _outputs(rows: Iterable[StoredItem]) -> dict[tuple[str, str], dict[str, Any]]:
    """Outputs by the row of their calls and the call's id, which some providers use again in every step."""
    outputs: dict[tuple[str, str], dict[str, Any]] = {}
    step = ""
    for row in rows:
        if row.kind == "tool_calls":
            step = row.id
        elif row.kind == "tool_output" and (content := content_of(row)):
            outputs[step, content["output"]["call_id"]] = content["output"]
    return outputs


def _step(row: StoredItem, outputs: dict[tuple[str, str], dict[str, Any]]) -> list[Any]:
    content = content_of(row)
    if content is None:
        return []
    unknown = {"type": "function_call_output", "output": UNKNOWN_OUTCOME}
    ids = [call["call_id"] for call in content["calls"]]
    answers = [outputs.get((row.id, call_id)) or {**unknown, "call_id": call_id} for call_id in ids]
    return [*content["reasoning"], *content["calls"], *answers]


class _Converter(ThreadItemConverter):
    async def convert(self, row: StoredItem) -> list[Any]:
        try:
            item = THREAD_ITEM.validate_python(row.item)
        except ValidationError:
            return []
        return await self.to_agent_input(item)

    async def user_message_to_input(self, item: UserMessageItem, is_last_message: bool = True) -> Any:
        return {"role": "user", "content": user_text(item)}

    async def assistant_message_to_input(self, item: AssistantMessageItem) -> Any:
        # With an id it is an output message: the SDK joins the calls that follow to it, as it did in the turn itself.
        parts = [{"type": "output_text", "text": part.text, "annotations": []} for part in item.content]
        return {"type": "message", "id": item.id, "role": "assistant", "status": "completed", "content": parts}

    async def hidden_context_to_input(self, item: HiddenContextItem) -> None:
        """Nothing: the hidden rows this version knows never come here."""


def user_text(item: UserMessageItem) -> str:
    """What the person wrote, below what they quoted."""
    text = "".join(f"@{part.text}" if isinstance(part, UserMessageTagContent) else part.text for part in item.content)
    if not item.quoted_text:
        return text
    quote = "\n".join(f"> {line}" for line in item.quoted_text.splitlines())
    return f"{quote}\n\n{text}"


def title_from(text: str, *, longest: int = 60) -> str:
    """A conversation's title: the first words of its first message, in at most `longest` characters."""
    words = " ".join(text.split())
    if len(words) <= longest:
        return words
    return words[:longest].rsplit(" ", 1)[0].rstrip(",.;:") + "…"


def note(thread_id: str, text: str, **more: Any) -> HiddenContextItem:
    """A hidden item the model reads and no client sees; `more` is kept beside the text, for neither."""
    content = {"kind": "note", "text": text, **more}
    return HiddenContextItem(id=new_id("note"), thread_id=thread_id, created_at=utc_now(), content=content)


def change_by_hand(thread_id: str, text: str) -> HiddenContextItem:
    """A note of what the person did themselves; it outlasts a retry of the message before it."""
    item = note(thread_id, text)
    return item.model_copy(update={"content": {"kind": "change", "text": text}})


def abandoned_attempt(thread_id: str, dropped: Sequence[StoredItem]) -> HiddenContextItem | None:
    """What the attempts that were dropped had already done, or None when they had called no tool."""
    notes = [content for row in dropped if row.kind == "note" and (content := content_of(row))]
    earlier = [content.get("attempted", ()) for content in notes]
    attempted = _merge([*earlier, _attempted(dropped)])[-_CALLS_IN_A_NOTE:]
    if not attempted:
        return None
    return note(
        thread_id,
        "The person asked for their last message to be answered again. An attempt that is not shown any more had made "
        "these calls already:\n"
        + "\n".join(f"- {call} → {outcome}" for call, outcome in attempted)
        + "\nDo not repeat what has been done: check with list_tasks.",
        attempted=attempted,
    )


def _attempted(rows: Sequence[StoredItem]) -> list[tuple[str, str]]:
    """The calls in these rows that may have changed something, each with its outcome."""
    outputs = _outputs(rows)
    steps = [(row.id, content) for row in rows if row.kind == "tool_calls" and (content := content_of(row))]
    return [
        (
            _clip(f"{call['name']}({call['arguments']})"),
            _clip(plain(outputs.get((step, call["call_id"]), {"output": UNKNOWN_OUTCOME})["output"])),
        )
        for step, content in steps
        for call in content["calls"]
        if call["name"] != "list_tasks"
    ]


def _merge(attempts: Iterable[Iterable[Sequence[str]]]) -> list[tuple[str, str]]:
    """The calls of all attempts: the second such call of one attempt is the second of another, as for their keys."""
    outcomes: dict[tuple[str, int], str] = {}
    for attempt in attempts:
        made: Counter[str] = Counter()
        for call, outcome in attempt:
            made[call] += 1
            if outcome != UNKNOWN_OUTCOME or (call, made[call]) not in outcomes:
                outcomes[call, made[call]] = outcome
    return [(call, outcome) for (call, _), outcome in outcomes.items()]


def _clip(text: str) -> str:
    return text if len(text) <= _CHARS_IN_A_NOTE else text[:_CHARS_IN_A_NOTE] + "…"


def plain(output: Any) -> str:
    """A tool's output as text."""
    if isinstance(output, list):
        return "\n".join(str(part.get("text") or "") for part in output)
    return output if isinstance(output, str) else json.dumps(output)
