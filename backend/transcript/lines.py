"""The form of a line of the event log: which keys it has, and how it is written."""

import json
from datetime import UTC, datetime
from typing import Any

KEYS = (
    *("ts", "level", "event", "session_id", "turn", "actor", "model", "input", "output", "tool_name"),
    *("prompt_tokens", "completion_tokens", "thinking_tokens", "latency_ms", "error"),
    *("id", "parent_id", "run_id", "agent"),
)
Line = dict[str, Any]
# What a reader may take for the end of a line, or a terminal for a command: in JSON it stands in texts alone.
_ESCAPED = {code: f"\\u{code:04x}" for code in (*range(0x7F, 0xA0), 0x2028, 0x2029)}


def create_line(event: str, at: datetime, *, id: str, **values: Any) -> Line:
    """Creates a line with all keys; those that are not given are null."""
    return dict.fromkeys(KEYS) | {"ts": _format_time(at), "level": "INFO", "event": event, "id": id, **values}


def format_line(line: Line) -> str:
    """Writes a line as JSON; characters that may end a line or control a terminal are escaped."""
    return json.dumps(line, ensure_ascii=False).translate(_ESCAPED) + "\n"


def _format_time(at: datetime) -> str:
    """Writes a time in UTC, with milliseconds and Z."""
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
