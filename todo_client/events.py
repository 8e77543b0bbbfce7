"""What an agent reports while it answers, and its result."""

import json
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal

Reason = Literal["completed", "aborted", "error"]
REASONS: dict[str, Reason] = {"COMPLETED": "completed", "CANCELLED": "aborted", "FAILED": "error"}
"""By the status of an interaction that has ended."""


class EventType(StrEnum):
    """The names of events; the comments say what is in `data`. Newer servers may send others."""

    AGENT_START = "AGENT_START"  # chat_id
    TURN_START = "TURN_START"  # a request to the model
    TURN_END = "TURN_END"
    PROGRESS = "PROGRESS"  # text: a sentence about what the answer waits for now
    THINKING_DELTA = "THINKING_DELTA"  # text: a piece of reasoning
    THINKING = "THINKING"  # text: the complete reasoning
    TEXT_DELTA = "TEXT_DELTA"  # text: a piece of the answer
    TEXT = "TEXT"  # text: complete; an answer may have several
    WITHDRAWN = "WITHDRAWN"  # the pieces of text since TURN_START: they claimed a change that was not made
    TOOL_CALL_START = "TOOL_CALL_START"  # id, name, input
    TOOL_CALL_END = "TOOL_CALL_END"  # id, name, output (what the model reads), is_error
    TOOL_RESULT = "TOOL_RESULT"  # id, name, details (for programs: tasks, exit code, diff), is_error
    APPROVAL_REQUIRED = "APPROVAL_REQUIRED"  # approval_id, name, input, text (what the call would do)
    APPROVED = "APPROVED"  # approval_id, reason
    REJECTED = "REJECTED"  # approval_id, reason
    NOTICE = "NOTICE"  # text (a sentence about a complete answer), code
    COMPACTION = "COMPACTION"  # messages: how many the model reads a summary of
    ERROR = "ERROR"  # error (a sentence), code, allow_retry
    AGENT_END = "AGENT_END"  # reason: completed, aborted, error


@dataclass(frozen=True)
class AgentEvent:
    """`agent` is the sub-agent that did it; None is the assistant.

    `type` is an `EventType`, or the name of an event of a newer server in capitals, with its data as in docs/api.md.
    """

    type: EventType | str
    data: dict[str, Any]
    interaction_id: str
    agent: str | None = None


@dataclass(frozen=True)
class Usage:
    """`input_tokens` and `output_tokens` of `requests` to the model; `reasoning_tokens` are part of the output."""

    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    reasoning_tokens: int = 0

    @property
    def total_tokens(self) -> int:
        return self.input_tokens + self.output_tokens

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(**{name: count + getattr(other, name) for name, count in vars(self).items()})


@dataclass(frozen=True)
class Result:
    """`text` is the last answer. `usage` and `changes` are those of all interactions that the prompt has led to.

    A change has `task_id`, `title` and `change`. `named` is how many the answers name, if these are more than were
    made. `unread` tells that the server could not say what was changed.
    """

    text: str
    reason: Reason
    usage: Usage
    interaction_id: str
    changes: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    named: int | None = None
    unread: bool = False


class RunFailed(Exception):
    """The assistant could not answer. The text says why; `code` is for programs, `result` has what was answered."""

    def __init__(self, sentence: str, code: str | None, result: Result) -> None:
        super().__init__(sentence)
        self.code, self.result = code, result


def render_agent_events(name: str, data: dict[str, Any]) -> list[tuple[EventType | str, dict[str, Any]]]:
    """Renders an event of the run API for an agent's listeners, without the start and the end of the agent."""
    match name:
        case "interaction_started" | "interaction_complete" | "cancelled":
            return []
        case "turn_start" | "turn_end" | "withdrawn":
            return [(EventType(name.upper()), {})]
        case "answer_delta" | "thinking_delta" | "answer" | "thinking":
            return [(EventType(name.upper().replace("ANSWER", "TEXT")), {"text": data["content"]})]
        case "tool_call":
            call = {"id": data["id"], "name": data["tool_name"], "input": _parse(data["tool_input"])}
            return [(EventType.TOOL_CALL_START, call)]
        case "tool_result":
            call = {"id": data["id"], "name": data["tool_name"], "is_error": data["is_error"]}
            return [
                (EventType.TOOL_CALL_END, {**call, "output": data["tool_output"]}),
                (EventType.TOOL_RESULT, {**call, "details": data["details"] or {}}),
            ]
        case "approval_required":
            call = {"name": data["tool_name"], "input": _parse(data["tool_input"]), "text": data["text"]}
            return [(EventType.APPROVAL_REQUIRED, {"approval_id": data["approval_id"], **call})]
        case _:
            kind = name.upper()
            return [(EventType(kind) if kind in EventType.__members__ else kind, data)]


def _parse(tool_input: str) -> Any:
    try:
        return json.loads(tool_input)
    except ValueError:
        return tool_input
