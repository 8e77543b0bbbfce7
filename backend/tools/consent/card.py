"""The card that asks a person for their consent, and says afterwards what they decided."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic import BaseModel, StrictStr, ValidationError

from backend.conversation.errors import InvalidRequest
from backend.conversation.items import Json
from backend.tools.connectors.names import for_people
from backend.tools.consent.policy import arguments_of, named_in
from backend.tools.table import shown
from service.database.text import can_be_seen, without_unseen

APPROVE, REFUSE = "approve_call", "refuse_call"  # types of actions
LONGEST_REASON = 1_000  # characters
_BOX: Json = {"type": "Checkbox", "key": "box", "name": "always", "label": "Always in this conversation"}
_ALWAYS: Sequence[Json] = ({"type": "Row", "key": "always", "children": [_BOX]},)
_REASON = "reason"  # the field, and its name in the action's payload
_CHARS_IN_A_LINE = 4_000  # a description whole: nothing is consented to unseen
_DIGITS = 19  # a task's number has fewer
_NAMING = ("also", "user_id")  # beside the first: they are no values
_BADGES: Mapping[str, tuple[str, str]] = {
    "approved": ("Approved", "success"),
    "refused": ("Refused", "secondary"),
    "not made": ("Not done", "secondary"),
}

Decided = Literal["approved", "refused", "not made"]


class Answered(BaseModel):
    """What a click in the card sends."""

    approval_id: StrictStr
    reason: StrictStr | None = None
    always: Literal["on"] | bool = False  # as forms send it


def in_words(tool: str, arguments: str, titles: Mapping[int, str], limits: str | None = None) -> str:
    """What a call would do: a line, and below it what it names and what it sets, each in a line of its own.

    The last says its `limits`, where they are others than the table's.
    """
    given = arguments_of(arguments) or {}
    words = shown(tool).words_for(given)
    first = "task_id" if "task_id" in given else "title"
    named = named_in(given, first)
    if words is None:
        head = f"Use the tool {for_people(tool)}"
    else:
        template = words.asked_several if len(named) > 1 and words.asked_several else words.asked
        head = template.format_map({"task_id": "…", "title": "…", **given, "count": len(named)})
    lines = [_task(number, titles) for number in named] if first == "task_id" else [f"“{title}”" for title in named]
    values = [
        f"{name}: {_shown(value)}"
        for name, value in given.items()
        if name not in (first, *_NAMING) and value is not None
    ]
    limits = limits or (words.limits if words is not None else "")
    last = [limits] if limits else []
    return "\n".join(map(_line, [head, *(lines if first == "task_id" or len(named) > 1 else ()), *values, *last]))


def titled(arguments: str) -> list[int]:
    """The numbers of the tasks that a call names, whose titles `in_words` would say."""
    named = named_in(arguments_of(arguments) or {}, "task_id")
    return [int(number) for number in named if number.isascii() and number.isdigit() and len(number) < _DIGITS]


def card(
    approval_id: str, text: str, decided: Decided | None = None, reason: str | None = None, *, lasting: bool = False
) -> Json:
    """The card of a call that waits, or what became of it; `lasting` consent may be given for the conversation."""
    head, *lines = text.split("\n")
    heading: Json = {"type": "Text", "key": "head", "value": head, "weight": "semibold"}
    listed = [
        {"type": "Text", "key": f"line-{number}", "value": line, "size": "sm"} for number, line in enumerate(lines)
    ]
    column = [{"type": "Col", "key": "lines", "gap": 1, "children": listed}] if listed else []
    if decided is None:
        return {
            "type": "Card",
            "key": approval_id,
            "asForm": True,
            "children": [{**heading, "value": f"{head}?"}, *column, *_reason_field(), *(_ALWAYS if lasting else ())],
            "confirm": _button("Approve", APPROVE, approval_id),
            "cancel": _button("Refuse", REFUSE, approval_id),
        }
    label, color = _BADGES[decided]
    badge = {"type": "Badge", "key": "decision", "label": label, "color": color, "variant": "soft"}
    first = {"type": "Row", "key": "first", "gap": 2, "wrap": "wrap", "align": "center", "children": [heading, badge]}
    why = [{"type": "Caption", "key": "why", "value": f"Reason: {reason}"}] if reason else []
    return {"type": "Card", "key": approval_id, "children": [first, *column, *why]}


def answered(payload: Any) -> Answered:
    """What a click in a card sent; raises `InvalidRequest` for what no card sends."""
    try:
        given = Answered.model_validate(payload)
    except ValidationError:
        raise InvalidRequest("This is no answer to a card that asks: open the conversation again.") from None
    return given.model_copy(update={"reason": checked_reason(given.reason)})


def checked_reason(reason: str | None) -> str | None:
    """The reason on one line, None where nothing of it can be seen; raises `InvalidRequest` for a long one."""
    if reason is None or not can_be_seen(reason):
        return None
    line = " ".join(without_unseen(reason).split())
    if len(line) > LONGEST_REASON:
        raise InvalidRequest(f"A reason has at most {LONGEST_REASON:,} characters: shorten it.")
    return line


def _reason_field() -> list[Json]:
    label = {"type": "Label", "key": "label", "value": "Reason (optional)", "fieldName": _REASON, "size": "sm"}
    return [label, {"type": "Textarea", "key": "field", "name": _REASON, "rows": 2}]


def _button(label: str, action: str, approval_id: str) -> Json:
    return {"label": label, "action": {"type": action, "payload": {"approval_id": approval_id}}}


def _task(number: str, titles: Mapping[int, str]) -> str:
    known = titles.get(int(number)) if number.isascii() and number.isdigit() and len(number) < _DIGITS else None
    return f"“{known}” ({number})" if known else f"Task {number}"


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _line(text: str) -> str:
    line = " ".join(without_unseen(text).split())
    more = len(line) - _CHARS_IN_A_LINE
    return line if more <= 0 else f"{line[:_CHARS_IN_A_LINE]}… and {more:,} characters more"
