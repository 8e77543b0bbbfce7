"""The card of a tool call that needs approval, before and after the user's decision, and its words."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic import BaseModel, StrictStr, ValidationError

from backend.cards.literal_text import render_arguments, render_line
from backend.cards.widget import Card, Json, action, badge, caption, column, row
from backend.conversations.approvals import Decision
from backend.conversations.records import ToolCall
from backend.errors import InvalidRequest
from backend.tools.approval_policy import arguments_of, count_deleted, list_named_tasks
from backend.tools.connectors.names import get_display_name
from backend.tools.table import find_texts, find_tool, normalize_arguments
from common.text import is_visible, remove_invisible

APPROVE, REJECT = "approve_call", "refuse_call"  # types of actions
MAX_REASON_LENGTH = 1_000  # characters
_REASON = "reason"  # the field, and its name in the action's payload
_MAX_LINES, _MAX_LENGTH = 200, 20_000  # of a card: users approve nothing that they cannot see
_MAX_ARGUMENTS = 100_000  # characters that are rendered at all: long runs of blanks are short on a card
_MAX_PATH = 100  # characters in the first line, which has the rest below it
_MAX_DIGITS = 18  # of a task's number
_NAMING = ("also", "user_id")  # arguments that name tasks or the user, as the first does
_NOT_GIVEN = (None, False, "", [])  # by the schemas of the task tools, as some models send everything
_WORDS_NOT_GIVEN = (("priority", "keep"), ("priority", "any"), ("status", "keep"))
_APPROVED, _REJECTED, _NOT_MADE = ("Approved", "success"), ("Rejected", "secondary"), ("Not done", "secondary")
_REASONS = {
    "other_message": "You wrote something else instead.",
    "stopped": "You stopped this answer.",
    "left_path": "You switched to another version of the conversation.",
    "reach_changed": "What this may access has changed since you were asked.",
}


class _Click(BaseModel):
    approval_id: StrictStr
    reason: StrictStr | None = None
    always: Literal["on"] | bool = False  # as forms send it


# What a call would do, in words


def describe_call(
    tool: str, arguments: str, titles: Mapping[int, str], limits: str | None = None, *, agent: str | None = None
) -> str:
    """Describes what a call would do: a line, and below it what it names and what it sets, each in a line of its own.

    The first names the `agent` that would do it, the last says its `limits`, in place of the table's.
    """
    given = normalize_arguments(tool, arguments_of(arguments) or {})
    words = find_texts(tool, given)
    if words is not None and (describe := find_tool(tool).describe) is not None:
        given = {**describe(given)}
    first = "task_id" if "task_id" in given else "title"
    names_tasks = agent is None and words is not None and find_tool(tool).agent is None
    named = list_named_tasks(given, first) if names_tasks else []
    lines = [_render_task(name, titles) if first == "task_id" else f"“{render_line(name)}”" for name in named]
    template = f"Use the tool {get_display_name(tool)}".replace("{", "{{").replace("}", "}}")
    if words is not None:
        template = words.asked_several if len(named) > 1 and words.asked_several else words.asked
    is_in_head = "{which}" in template
    path = render_line(str(given.get("path", "…")))
    path = path if len(path) <= _MAX_PATH else f"{path[:_MAX_PATH]}…"
    head = template.format_map({"path": path, "which": lines[0] if lines else "…", "count": len(named)})
    if agent is not None:
        head = f"Let the {agent} {head[0].lower()}{head[1:]}"
    omitted = (first, *_NAMING) if names_tasks else ()
    not_given = _NOT_GIVEN if names_tasks else () if words is None else (None,)
    values = {name: value for name, value in given.items() if name not in omitted and not _is_in(value, not_given)}
    if names_tasks:
        values = {name: value for name, value in values.items() if (name, value) not in _WORDS_NOT_GIVEN}
    limits = limits or (words.limits if words is not None else "")
    below = [*(() if is_in_head else lines), *render_arguments(values), *([render_line(limits)] if limits else [])]
    return "\n".join([head, *below])


def can_show_whole(tool: str, arguments: str, *, agent: str | None = None) -> bool:
    """Whether a card has enough space for all that a call would do."""
    if len(arguments) > _MAX_ARGUMENTS:
        return False
    text = describe_call(tool, arguments, {}, agent=agent)
    return len(text) <= _MAX_LENGTH and text.count("\n") < _MAX_LINES


def as_question(text: str) -> str:
    head, *lines = text.split("\n")
    return "\n".join([f"{head}?", *lines])


def find_named_tasks(arguments: str) -> list[int]:
    named = list_named_tasks(arguments_of(arguments) or {}, "task_id")
    return [int(number) for number in named if number.isascii() and number.isdigit() and len(number) <= _MAX_DIGITS]


def _render_task(number: str, titles: Mapping[int, str]) -> str:
    known = titles.get(int(number)) if number.isascii() and number.isdigit() and len(number) <= _MAX_DIGITS else None
    return f"“{_line(known)}”" if known else f"task {render_line(number)}"


def _is_in(value: Any, values: Sequence[Any]) -> bool:
    """Whether the value is one of others; 0 is not False."""
    return any(type(value) is type(other) and value == other for other in values)


def _line(text: str) -> str:
    return " ".join(remove_invisible(text).split())


# The card


def render_approval(call: ToolCall) -> Card | None:
    """Returns None for a call that needs no approval, or was not requested yet."""
    if call.approval_seq is None or call.approval_text is None or call.created_at is None:
        return None
    root = _render_question(call) if call.state in ("awaiting_approval", "requested") else _render_decision(call)
    return Card(f"apr_{call.id}", call.approval_seq, call.created_at, root, call.approval_text)


def may_allow_always(tool: str) -> bool:
    """Whether users may allow all later calls of a tool in a conversation: it starts an agent or is a connector's."""
    return find_tool(tool).asked_with is not None


def _render_question(call: ToolCall) -> Json:
    heading, lines = _render_text(call.approval_text or "")
    deletes = count_deleted(call.tool, call.arguments)
    label = {"type": "Label", "key": "label", "value": "Reason (optional)", "fieldName": _REASON, "size": "sm"}
    reason = [label, {"type": "Textarea", "key": "field", "name": _REASON, "rows": 2}]
    always = [_render_always(call.tool)] if may_allow_always(call.tool) else []
    return {
        "type": "Card",
        "key": call.id,
        "asForm": True,
        "children": [{**heading, "value": f"{heading['value']}?"}, *lines, *reason, *always],
        "confirm": _approve_button(call.id, deletes),
        "cancel": _render_button(
            "Reject" if not deletes else "Keep it" if deletes == 1 else "Keep them", REJECT, call.id
        ),
    }


def _render_always(tool: str) -> Json:
    agent = find_tool(tool).agent
    scope = f"the {agent} in this conversation, whatever its task" if agent is not None else ""
    scope = scope or f"{get_display_name(tool)} in this conversation, whatever it is sent"
    box: Json = {"type": "Checkbox", "key": "box", "name": "always", "label": f"Always allow {scope}"}
    return {"type": "Row", "key": "always", "children": [box]}


def _render_decision(call: ToolCall) -> Json:
    heading, lines = _render_text(call.approval_text or "")
    is_not_made = call.state == "not_made" or (call.state == "rejected" and call.reason == "reach_changed")
    label, color = _NOT_MADE if is_not_made else _REJECTED if call.state == "rejected" else _APPROVED
    first = row(heading, badge(label, color) | {"key": "decision"}, key="first")
    reason = call.decision_text or _REASONS.get(call.reason or "")
    why = [caption(f"Reason: {reason}", key="why")] if reason else []
    return {"type": "Card", "key": call.id, "children": [first, *lines, *why]}


def _render_text(text: str) -> tuple[Json, list[Json]]:
    head, *lines = text.split("\n")
    heading: Json = {"type": "Text", "key": "head", "value": head, "weight": "semibold"}
    listed = [
        {"type": "Text", "key": f"line-{number}", "value": line, "size": "sm"} for number, line in enumerate(lines)
    ]
    return heading, [column(*listed, key="lines")] if listed else []


def _approve_button(approval_id: str, deletes: int) -> Json:
    """States the effect where tasks would be deleted; the page draws it as dangerous then."""
    if not deletes:
        return _render_button("Approve", APPROVE, approval_id)
    button = _render_button("Delete this task" if deletes == 1 else f"Delete {deletes} tasks", APPROVE, approval_id)
    button["action"]["payload"]["deletes"] = deletes
    return button


def _render_button(label: str, kind: str, approval_id: str) -> Json:
    return {"label": label, "action": action(kind, {"approval_id": approval_id})}


# Clicks


def parse_decision(payload: Any, *, approved: bool) -> tuple[str, Decision, bool]:
    try:
        click = _Click.model_validate(payload)
    except ValidationError:
        raise InvalidRequest("This question cannot be answered any more. Open the conversation again.") from None
    decision = Decision(approved, text=check_reason(click.reason))
    return click.approval_id, decision, approved and bool(click.always)


def check_reason(reason: str | None) -> str | None:
    """Returns the reason on one line; None if nothing of it can be seen. Raises `InvalidRequest` for a long one."""
    if reason is None or not is_visible(reason):
        return None
    line = " ".join(remove_invisible(reason).split())
    if len(line) > MAX_REASON_LENGTH:
        raise InvalidRequest(f"A reason can have up to {MAX_REASON_LENGTH:,} characters. Shorten it.")
    return line
