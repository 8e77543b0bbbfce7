"""The form of a line: which keys it has, and how it is written."""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from service.database import to_utc

KEYS = (
    *("ts", "level", "event", "session_id", "turn", "actor", "model", "input", "output", "tool_name"),
    *("prompt_tokens", "completion_tokens", "thinking_tokens", "latency_ms", "error"),
    *("id", "parent_id", "run_id", "agent"),
)
Line = dict[str, Any]
# What a reader may take for the end of a line, or a terminal for a command: in JSON it stands in texts alone.
_ESCAPED = {code: f"\\u{code:04x}" for code in (*range(0x7F, 0xA0), 0x2028, 0x2029)}


def line(event: str, at: datetime, *, id: str, **more: Any) -> Line:
    """All keys, those that are not given with null."""
    return dict.fromkeys(KEYS) | {"ts": _moment(at), "level": "INFO", "event": event, "id": id, **more}


def written(line: Line) -> str:
    return json.dumps(line, ensure_ascii=False).translate(_ESCAPED) + "\n"


def figures(usage: Mapping[str, Any] | None, *, model: str | None) -> Line:
    """What a request to the model took, where that was kept; a provider that tells no tokens is told to have none."""
    used = usage or {}
    counted = bool(used.get("input_tokens"))
    seconds = used.get("seconds")
    return {
        "model": used.get("model") or model,
        "prompt_tokens": used["input_tokens"] if counted else None,
        "completion_tokens": used.get("output_tokens") if counted else None,
        "thinking_tokens": used.get("reasoning_tokens") if counted else None,
        "latency_ms": None if seconds is None else round(seconds * 1000),
    }


def _moment(at: datetime) -> str:
    return to_utc(at).isoformat(timespec="milliseconds").replace("+00:00", "Z")
