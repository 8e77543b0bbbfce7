"""Rows of a conversation → what the model reads, the same for the same rows every time."""

import json
import logging
from collections import Counter
from collections.abc import Container, Iterable, Sequence
from datetime import datetime
from typing import Any, Literal

from agents.items import TResponseInputItem
from openai.types.responses import ResponseFunctionToolCall
from pydantic import AwareDatetime, BaseModel, ValidationError

from backend.context import hidden_context as hidden
from backend.conversation import rows
from backend.conversation.items import Hidden
from backend.conversation.rows import ONLY_SHOWN, StoredItem
from service.clock import wall_clock
from service.database import new_id
from service.database.text import without_unseen

logger = logging.getLogger(__name__)

UNKNOWN_OUTCOME = (
    "The outcome of this call is unknown: it may have been carried out. Check what is there before repeating it."
)
NOT_MADE = "This call was not made: the answer was ended before its turn came."

_AGAIN = "The person asked for their last message to be answered again. An attempt that is not shown any more had"
_EDITED = (
    "The person changed this message. What followed it before is not shown any more, but the tasks are as that left"
    " them: it had"
)
_ELSEWHERE = (
    "The person looks at another version of this conversation. The tasks are the same in all of them. Versions that are"
    " not shown had"
)
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


class _Now(BaseModel):
    now: AwareDatetime
    time_zone: str
    calendar: bool = False


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
        (_Now if is_now(row) else _CONTENTS[row.kind]).model_validate(content)
    except ValidationError:
        logger.warning("item %s of kind %s is not read: its content is unknown to this version", row.id, row.kind)
        return None
    return content


def is_now(row: StoredItem) -> bool:
    """Whether the row is a note of what day and time it was, and where."""
    content = row.item.get("content")
    return row.kind == "note" and isinstance(content, dict) and "now" in content


def text_of(content: dict[str, Any]) -> str:
    """What a note says; for the same note the same, whenever it is read."""
    if "now" in content:
        here = wall_clock(datetime.fromisoformat(content["now"]), content["time_zone"])
        return f"{here}, calendar feed on" if content.get("calendar") else here
    return content["text"]


async def to_model_input(stored: Iterable[StoredItem]) -> list[TResponseInputItem]:
    """The model's input for these rows: calls paired with their outputs, nothing that is only for the page."""
    stored = list(stored)
    outputs = outputs_of(stored)
    items: list[Any] = []
    for row in stored:
        match row.kind:
            case "tool_calls":
                items.extend(_step(row, outputs))
            case "note" | "change":
                if content := content_of(row):
                    items.append({"role": "user", "content": hidden.block(text_of(content))})
            case "tool_output":
                pass
            case kind if kind not in ONLY_SHOWN:
                items.extend(await rows.to_model_input(row))
    return items


def outputs_of(rows: Iterable[StoredItem]) -> dict[tuple[str, str], dict[str, Any]]:
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


def title_from(text: str, *, longest: int = 60) -> str:
    """A conversation's title: the first words of its first message, in at most `longest` characters."""
    words = " ".join(without_unseen(text).split())
    if len(words) <= longest:
        return words
    return words[:longest].rsplit(" ", 1)[0].rstrip(",.;:") + "…"


def note(text: str, **more: Any) -> Hidden:
    """A hidden item the model reads and no client sees; `more` is kept beside the text, for neither."""
    return Hidden(id=new_id("note"), content={"kind": "note", "text": text, **more})


def now_note(now: datetime, zone: str, *, calendar: bool = False) -> Hidden:
    """A note of what day and time it is, and whether the person has a calendar.

    It holds the instant: the zone, and whether there is a calendar, may be known to the database only.
    """
    fed = {"calendar": True} if calendar else {}
    return Hidden(id=new_id("note"), content={"kind": "note", "now": now.isoformat(), "time_zone": zone, **fed})


def change_by_hand(text: str) -> Hidden:
    """A note of what the person did themselves; it outlasts a retry of the message before it."""
    return Hidden(id=new_id("note"), content={"kind": "change", "text": text})


def abandoned_attempt(dropped: Sequence[StoredItem], *, reading: Container[str], edited: bool = False) -> Hidden | None:
    """What the attempts that were dropped had already done, or None when they had called no tool but the `reading`.

    `edited` tells that the person changed the message that they had answered.
    """
    attempted = _merge([*_told(dropped), _attempted(dropped, reading)])[-_CALLS_IN_A_NOTE:]
    if not attempted:
        return None
    return _note_of(_EDITED if edited else _AGAIN, attempted)


def elsewhere(there: Sequence[StoredItem], here: Sequence[StoredItem], *, reading: Container[str]) -> Hidden | None:
    """What was done in versions of the conversation that are not shown, and is not known in the one that is.

    The task list has no versions. None when there is nothing.
    """
    known = {*_merge(_told(here)), *_attempted(here, reading)}
    attempted = [call for call in _merge([*_told(there), _attempted(there, reading)]) if call not in known]
    if not attempted:
        return None
    return _note_of(_ELSEWHERE, attempted[-_CALLS_IN_A_NOTE:], elsewhere=True)


def _note_of(why: str, attempted: Sequence[tuple[str, str]], **more: Any) -> Hidden:
    calls = "\n".join(f"- {call} → {outcome}" for call, outcome in attempted)
    check = "Do not repeat what has been done: check what is there."
    return note(f"{why} made these calls already:\n{calls}\n{check}", attempted=attempted, **more)


def _told(rows: Iterable[StoredItem]) -> list[Sequence[Sequence[str]]]:
    """The calls that the notes among these rows tell of."""
    notes = [content for row in rows if row.kind == "note" and (content := content_of(row))]
    return [content.get("attempted", ()) for content in notes]


def _attempted(rows: Sequence[StoredItem], reading: Container[str]) -> list[tuple[str, str]]:
    """The calls in these rows that may have changed something, each with its outcome."""
    outputs = outputs_of(rows)
    made = [
        (call, plain(outputs.get((row.id, call["call_id"]), {"output": UNKNOWN_OUTCOME})["output"]))
        for row in rows
        if row.kind == "tool_calls" and (content := content_of(row))
        for call in content["calls"]
    ]
    return [
        (_clip(f"{call['name']}({call['arguments']})"), _clip(outcome))
        for call, outcome in made
        if call["name"] not in reading and outcome != NOT_MADE
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
