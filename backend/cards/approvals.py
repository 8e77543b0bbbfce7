"""The card of a tool call that needs approval, before and after the user's decision."""

from typing import Any

from backend.cards.approval_card import Decided, answered, card
from backend.cards.widget import Card
from backend.conversations.records import ToolCall
from backend.conversations.tool_calls import Decision
from backend.tools.approval_policy import deleted_by
from backend.tools.table import find_tool

_REASONS = {
    "other_message": "You wrote something else instead.",
    "stopped": "You stopped this answer.",
    "left_path": "You switched to another version of the conversation.",
    "reach_changed": "What this may access has changed since you were asked.",
}


def render_approval(call: ToolCall) -> Card | None:
    """None for a call that needs no approval, or was not requested yet."""
    if call.approval_seq is None or call.approval_text is None or call.created_at is None:
        return None
    root = card(
        call.id,
        call.approval_text,
        _decided(call),
        call.decision_text or _REASONS.get(call.reason or ""),
        lasting=may_allow_always(call.tool),
        deletes=deleted_by(call.tool, call.arguments),
    )
    return Card(f"apr_{call.id}", call.approval_seq, call.created_at, root, call.approval_text)


def may_allow_always(tool: str) -> bool:
    """Whether all calls of a tool in a conversation can be approved at once."""
    return find_tool(tool).asked_with is not None


def parse_decision(payload: Any, *, approved: bool) -> tuple[str, Decision, bool]:
    """The call that a click on Approve or Reject decides, the decision, and whether it is for all later calls too.

    Raises `InvalidRequest` for a payload that no card sends.
    """
    given = answered(payload)
    return given.approval_id, Decision(approved, text=given.reason), approved and bool(given.always)


def _decided(call: ToolCall) -> Decided | None:
    match call.state:
        case "awaiting_approval" | "requested":
            return None
        case "rejected":
            return "not made" if call.reason == "reach_changed" else "refused"
        case "not_made":
            return "not made"
        case _:
            return "approved"
