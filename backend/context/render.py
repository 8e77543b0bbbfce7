"""Renders a timeline as input items of the Agents SDK. Every tool call has an output, whatever became of it."""

from datetime import datetime
from typing import Any

from backend.context import hidden_context as hidden
from backend.context.changes import render_change
from backend.conversations.records import Entry, Timeline, ToolCall
from service.clock import wall_clock

# What the model reads of a call that no tool has answered, by its reason and else by its state.
_REJECTED = "The user rejected this call: it was not made. Do not repeat it unless they ask for it."
_BY_REASON = {
    "other_message": "This call was not made: the user said something else instead.",
    "stopped": "This call was not made: the user stopped the answer.",
    "left_path": "This call was not made: the user went to another branch of the conversation.",
    "reach_changed": "This call was not made: what it may reach has changed since the user was asked. Make it again.",
    "not_shown": "This call was not made: it is too long to be shown to the user. Make several calls with less in "
    "each.",
    "too_many": "This call was not made: of one response at most 6 calls are made. Make it again if it is still "
    "needed.",
    "over_limit": "This call was cut off at the output limit: nothing was done. Write it in parts: make several calls, "
    "each with less in it. Write a long file with write_file for its first part and write_file with append for each "
    "other one.",
}
_UNKNOWN = "The outcome of this call is unknown: it may have been carried out. Check what is there before repeating it."
_NOT_MADE = "This call was not made: the answer was ended before its turn came."
_ENDED = {
    "cancelled": "The user stopped this answer. Do not go on with it unless they ask for it.",
    "interrupted": "The server had to end this answer. Check what was done before you go on with it.",
}


def render_input(timeline: Timeline) -> list[Any]:
    """In the order in which it happened; the outputs of a model turn's calls follow its last call."""
    items: list[Any] = []
    outputs: list[Any] = []
    model_turn: tuple[str, int] | None = None
    for record in timeline.records:
        of = (record.run_id, record.model_turn) if isinstance(record, ToolCall) else None
        if of != model_turn:
            items += outputs
            outputs, model_turn = [], of
        if isinstance(record, ToolCall):
            items.append(hidden.tamed(_render_call(record)))
            outputs.append(hidden.tamed(_render_output(record)))
        else:
            items += _render_entry(record)
    return [*items, *outputs]


def _render_call(call: ToolCall) -> dict[str, Any]:
    return {"type": "function_call", "call_id": call.id, "name": call.tool, "arguments": call.arguments}


def _render_output(call: ToolCall) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": call.id, "output": output_of(call)}


def output_of(call: ToolCall) -> str:
    """What the model reads as the output of a call."""
    if call.output is not None:
        return call.output
    if call.state == "rejected" and call.reason in (None, "user"):
        return f"{_REJECTED} Their reason: “{call.decision_text}”" if call.decision_text else _REJECTED
    if call.state in ("rejected", "not_made"):
        return _BY_REASON.get(call.reason or "", _NOT_MADE)
    return _UNKNOWN


def _render_entry(entry: Entry) -> list[Any]:
    match entry.kind:
        case "user_message":
            return [*_render_time(entry), {"role": "user", "content": hidden.said(entry.text)}]
        case "assistant_message" if entry.text:
            # With an id the SDK joins it with the calls that follow to one message, as the model wrote it.
            parts = [{"type": "output_text", "text": entry.text, "annotations": []}]
            message = {"type": "message", "id": entry.id, "role": "assistant", "status": "completed", "content": parts}
            return [hidden.tamed(message)]
        case "change":
            return [_hidden(render_change(entry.details or {}))]
        case "branch_note" | "summary":
            return [_hidden(entry.text)]
        case "notice" if (code := (entry.details or {}).get("code")) in _ENDED:
            return [_hidden(_ENDED[code])]
        case _:
            return []


def _render_time(entry: Entry) -> list[Any]:
    """The note before a message: day, time and zone of its user, and whether they have a calendar feed."""
    details = entry.details or {}
    if "now" not in details:
        return []
    here = wall_clock(datetime.fromisoformat(details["now"]), details.get("time_zone") or "UTC")
    return [_hidden(f"{here}, calendar feed on" if details.get("calendar") else here)]


def _hidden(text: str) -> dict[str, Any]:
    return {"role": "user", "content": hidden.block(text)}
