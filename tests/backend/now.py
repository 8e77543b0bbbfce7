"""The notes of what day and time it is, among the messages that the model is sent."""

import re
from typing import Any

from backend.context.hidden_context import block

_NOW = re.compile(re.escape(block("…")).replace("…", r"(\w{3} \d{4}-\d\d-\d\d \d\d:\d\d, \S+(?:, calendar feed on)?)"))


def now_of(message: dict[str, Any]) -> str | None:
    """What a note of this kind says; None for any other message."""
    found = _NOW.fullmatch(str(message["content"])) if message["role"] == "user" else None
    return found and found[1]


def without_now(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """For tests of the other messages."""
    return [message for message in messages if now_of(message) is None]
