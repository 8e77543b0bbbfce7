"""The form of a line of the event log: which keys it has, and how it is written."""

import json
from datetime import UTC, datetime
from typing import Any, Literal

from pydantic import BaseModel, Field

Line = dict[str, Any]
# What a reader may take for the end of a line, or a terminal for a command: in JSON it stands in texts alone.
_ESCAPED = {code: f"\\u{code:04x}" for code in (*range(0x7F, 0xA0), 0x2028, 0x2029)}


class LogLine(BaseModel):
    """A line of a chat's log; every key is always there."""

    ts: str = Field(description="UTC, with milliseconds and Z.")
    level: Literal["INFO", "WARNING", "ERROR"]
    event: Literal[
        "session_start",
        "user_message",
        "assistant_message",
        "tool_call",
        "tool_result",
        "mcp_call",
        "mcp_result",
        "session_clear",
        "error",
    ]
    session_id: str = Field(description="The chat's id.")
    turn: int | None = Field(description="The number of the message on its branch, from 1.")
    actor: Literal["user", "assistant", "tool", "system"] | None
    model: str | None
    input: str | None = Field(description="The user's message, or a call's arguments as JSON.")
    output: str | None = Field(description="The assistant's text, or the result of a call.")
    tool_name: str | None
    prompt_tokens: int | None
    completion_tokens: int | None
    thinking_tokens: int | None
    latency_ms: int | None
    error: str | None
    id: str
    parent_id: str | None = Field(
        description="The line that it follows; of a chat's first line, the chat that it replaced."
    )
    run_id: str | None
    agent: str | None


def format_line(line: Line) -> str:
    return json.dumps(line, ensure_ascii=False).translate(_ESCAPED) + "\n"


def format_time(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
