"""Chooses the replays of a history that are sent to the provider again, and adds them to the input items."""

from typing import Any

from backend.context import hidden_context
from backend.conversations.records import Entry, ModelTurn, Timeline, ToolCall

Replays = dict[str, dict[str, Any]]
"""By the id of a model turn's first call, or of its text if it has none."""


def find_replays(history: Timeline) -> Replays:
    """Returns the replays of runs that have made calls: providers ignore the reasoning of other answers."""
    turns = {(turn.run_id, turn.model_turn): turn for turn in history.model_turns}
    with_calls = {call.run_id for call in history.calls}
    first: dict[tuple[str, int], Entry | ToolCall] = {}
    for record in history.records if turns else ():
        turn = record.run_id, record.model_turn
        is_text = isinstance(record, Entry) and record.kind == "assistant_message"
        if isinstance(record, ToolCall) and not isinstance(first.get(turn), ToolCall):
            first[turn] = record
        elif is_text and record.run_id in with_calls:
            first.setdefault(turn, record)
    return {record.id: render_replay(turns[turn]) for turn, record in first.items() if turn in turns}


def render_replay(turn: ModelTurn) -> dict[str, Any]:
    """Returns the replay as it came, apart from texts in it that look like hidden context."""
    return _sanitize(turn.replay or {})


def add_replay(item: Any, replays: Replays) -> Any:
    replay = replays.get(item.get("call_id") if item.get("type") == "function_call" else item.get("id"))
    return item if replay is None else {**item, "replay": replay}


def _sanitize(value: Any) -> Any:
    match value:
        case str():
            return hidden_context.sanitize(value)
        case list():
            return [_sanitize(one) for one in value]
        case dict():
            return {name: _sanitize(one) for name, one in value.items()}
        case _:
            return value
