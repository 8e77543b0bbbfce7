"""The line that is shown while a tool call runs, and the one when it is done."""

from collections.abc import Mapping
from typing import Any

from backend.conversations.records import ToolCall
from backend.tools.approval_policy import arguments_of
from backend.tools.table import LineValues, words_for

_LONGEST = 60  # characters of a value


def render_running(call: ToolCall) -> str | None:
    """Renders the line that is shown while a call runs; None for a tool of which nothing is shown."""
    arguments = arguments_of(call.arguments) or {}
    words, count = words_for(call.tool, arguments), _count(arguments)
    if words is None:
        return None
    return _line(words.running_several if count > 1 else words.running, arguments, count) or None


def render_done(call: ToolCall) -> str | None:
    """Renders the line that is shown when a call is done; None for one that failed, and for a tool of which nothing is
    shown.
    """
    words = words_for(call.tool, arguments_of(call.arguments) or {})
    if words is None or call.state != "done":
        return None
    details = call.details or {}
    count = _count(details)
    return _line(words.done_several if count > 1 else words.done, details, count) or None


def _count(values: Mapping[str, Any]) -> int:
    """How many tasks the arguments or the result of a call name."""
    also = values.get("also")
    return 1 + len(also) if isinstance(also, list) else 1


def _line(template: str, values: Mapping[str, Any], count: int) -> str:
    """Fills the values of a call into a line, each cut to 60 characters."""
    shortened = {name: str(value)[:_LONGEST] for name, value in {**values, "count": count}.items()}
    return template.format_map(LineValues(shortened))
