"""Replays: what a provider wants back with a model turn, as it sent it, such as reasoning and signatures.

A replay is stored with its model turn, as `{"origin": …, "message": {field: value}, "calls": [{field: value}]}`, and is
sent to the server and model alone from which it came.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from backend.model.tool_calls import ParsedToolCall, make_storable

Replay = dict[str, Any]
ITEMS = "reasoning_items"
"""The field of a message with the output items of the Responses API."""

_STATE = re.compile(r"reason|think|thought|signature|encrypted|provider_specific", re.IGNORECASE)
_STATE_OF_CALL = re.compile(rf"{_STATE.pattern}|extra_content", re.IGNORECASE)
_STATE_IN_ID = "__thought__"  # before a signature, as LiteLLM puts it into the id of a call (BerriAI/litellm#16895)
_WHOLE = re.compile(r"signature|encrypted|opaque", re.IGNORECASE)  # texts that no server sends in pieces
_TEXTS = ("text", "summary", "thinking", "content")  # of a part of reasoning, which comes in pieces
_MAX_CHARS = 400_000  # of a model turn: what is larger is not stored


def select_state(call: Mapping[str, Any]) -> Replay:
    """Returns the fields of a tool call that its server wants back."""
    state = {name: value for name, value in call.items() if value and _STATE_OF_CALL.search(name)}
    return state | ({"id": call["id"]} if _STATE_IN_ID in str(call.get("id")) else {})


def keep_replays(messages: Iterable[Replay], origin: str) -> list[Replay]:
    """Returns messages without the replays of other senders."""
    return [
        message if message.get("replay", {}).get("origin", origin) == origin else {**message, "replay": None}
        for message in messages
    ]


class ReplayCollector:
    """Collects the fields of one response, which may come in pieces."""

    def __init__(self) -> None:
        self._pieces: dict[str, list[Any]] = {}
        self._chars = 0

    def read(self, delta: Mapping[str, Any]) -> None:
        for name, value in delta.items():
            if value and self._chars <= _MAX_CHARS and _STATE.search(name):
                self._chars += len(value) if isinstance(value, str) else len(json.dumps(value))
                self._pieces.setdefault(name, []).append(value)

    def create(self, calls: Sequence[ParsedToolCall]) -> Replay | None:
        message = {name: _join(name, pieces) for name, pieces in self._pieces.items()}
        of_calls = [call.replay or {} for call in calls]
        if ITEMS in message:  # they have the reasoning that was shown, too
            message = {ITEMS: message[ITEMS]}
        if self._chars + len(json.dumps(of_calls)) > _MAX_CHARS or not (message or any(of_calls)):
            return None
        return make_storable({"message": message, "calls": of_calls})


def _join(name: str, pieces: list[Any]) -> Any:
    if all(isinstance(piece, str) for piece in pieces):
        return pieces[-1] if _WHOLE.search(name) else "".join(pieces)
    if all(isinstance(piece, list) for piece in pieces):
        parts = [*chain.from_iterable(pieces)]
        return parts if name == ITEMS else [_join_group(group) for group in _group_parts(parts)]
    if all(isinstance(piece, dict) for piece in pieces):
        return {key: value for piece in pieces for key, value in piece.items()}
    return pieces[-1]


def _group_parts(parts: Iterable[Any]) -> Iterator[list[Any]]:
    """Groups the pieces of each part: those that follow it with its type and index, until one has a signature."""
    group: list[Any] = []
    for part in parts:
        if group and not _continues(part, group[-1]):
            yield group
            group = []
        group.append(part)
    if group:
        yield group


def _continues(part: Any, before: Any) -> bool:
    if not isinstance(part, dict) or not isinstance(before, dict) or "data" in part or before.get("signature"):
        return False
    return all(part.get(name) == before.get(name) for name in ("type", "index"))


def _join_group(group: list[Any]) -> Any:
    if len(group) == 1:
        return group[0]
    joined: Replay = {}
    for name in dict.fromkeys(name for part in group for name in part):
        values = [part[name] for part in group if part.get(name) is not None]
        is_text = name in _TEXTS and all(isinstance(value, str) for value in values)
        joined[name] = "".join(values) if is_text else values[-1] if values else None
    return joined
