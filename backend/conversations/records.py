"""Values read from the tables of `schema`, and the events of a run that they stand for."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

Status = Literal["running", "waiting", "completed", "failed", "cancelled", "interrupted"]
Outcome = Literal["completed", "failed", "cancelled", "interrupted"]
EntryKind = Literal[
    "user_message",
    "assistant_message",
    "withdrawn",
    "reasoning",
    "notice",
    "changes",
    "summary",
    "change",
    "branch_note",
    "command",
]
CallState = Literal[
    "requested", "awaiting_approval", "approved", "rejected", "running", "done", "failed", "unknown", "not_made"
]
CallReason = Literal[
    "user", "other_message", "stopped", "left_path", "reach_changed", "not_shown", "too_many", "over_limit", "ended"
]
ASSISTANT = "assistant"
"""The agent of runs that are no sub-agent's."""
ENDED: tuple[Outcome, ...] = ("completed", "failed", "cancelled", "interrupted")
UNKNOWN_OUTCOME = (
    "The outcome of this call is unknown: it may have been carried out. Check what is there before repeating it."
)
"""What the model reads of a call that was made without a response."""


@dataclass(slots=True)
class Run:
    """One answer. The process that executes it counts its usage here until it is stored."""

    user_id: str
    id: str
    conversation_id: str
    seq: int
    previous_run_id: str | None
    parent_run_id: str | None
    parent_call_id: str | None
    top_run_id: str
    agent: str
    active: bool
    status: Status
    process_id: int | None
    stop_requested: bool
    options: dict[str, Any]
    usage: dict[str, Any] | None
    error_code: str | None
    created_at: datetime
    running_since: datetime
    ended_at: datetime | None
    end_seq: int | None
    next_run_id: str | None = None
    """The run that answers its first follow-up; read with a tree of runs only."""
    changes: dict[str, Any] | None = None
    """What it changed in the task list, as `common.changes` describes it; read with a tree of runs only."""

    @property
    def is_sub_agent(self) -> bool:
        return self.parent_call_id is not None

    @property
    def schedule_id(self) -> str | None:
        """The schedule that has started it, also of its sub-agents' runs."""
        return self.options.get("schedule")

    @property
    def sub_agent(self) -> str | None:
        return self.agent if self.is_sub_agent else None


@dataclass(frozen=True, slots=True)
class RunLink:
    """Where a run stands among those of its conversation."""

    id: str
    previous_run_id: str | None
    parent_run_id: str | None
    parent_call_id: str | None


@dataclass(frozen=True, slots=True)
class ConversationHead:
    title: str | None
    created_at: datetime


@dataclass(slots=True)
class Entry:
    """Something said or noted in a run. `seq` is None until it is stored, and while it waits in the steering queue.

    A text of the assistant that was `withdrawn` as it claimed a change that was not made has no text any more. The
    `changes` of a top run are stored with its outcome, or incomplete while it waits.
    """

    run_id: str
    id: str
    kind: EntryKind
    text: str = ""
    details: dict[str, Any] | None = None
    complete: bool = True
    model_turn: int = 0
    feedback: str | None = None
    seq: int | None = None
    last_seq: int | None = None
    created_at: datetime | None = None


@dataclass(slots=True)
class ToolCall:
    """A use of a tool: `arguments` as the model wrote them, `output` what the model reads, `details` for others.

    `approval_text` is what the user is asked: empty until then, and None if the call needs no approval.
    """

    run_id: str
    id: str
    model_turn: int
    tool: str
    arguments: str
    state: CallState
    idempotency_key: str
    output: str | None = None
    details: dict[str, Any] | None = None
    seconds: float | None = None
    approval_text: str | None = None
    reach: str | None = None
    reason: CallReason | None = None
    decision_text: str | None = None
    feedback: str | None = None
    seq: int | None = None
    approval_seq: int | None = None
    decision_seq: int | None = None
    result_seq: int | None = None
    created_at: datetime | None = None

    @property
    def needs_approval(self) -> bool:
        return self.approval_text is not None


@dataclass(slots=True)
class ModelTurn:
    """One request to the model; `seconds` from the request to the response's end."""

    run_id: str
    model_turn: int
    model: str
    usage: dict[str, Any] | None
    seconds: float
    finish_reason: str | None
    seq: int | None = None
    replay: dict[str, Any] | None = None
    """What the provider wants back with it, as `backend.model.requests.replay` describes; read with a history only."""


Record = Entry | ToolCall
EventRecord = Record | ModelTurn

EventType = Literal[
    "model_turn_started",
    "model_turn_ended",
    "entry_started",
    "entry_delta",
    "entry_completed",
    "entry_withdrawn",
    "call_requested",
    "approval_requested",
    "approval_decided",
    "call_completed",
    "progress",
    "run_waiting",
    "run_ended",
]


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened in a run. Only what is stored has a number, so that a reader can go on after it."""

    type: EventType
    record: EventRecord | None = None
    number: int | None = None
    text: str = ""
    run: Run | None = None

    @property
    def sub_agent(self) -> str | None:
        return self.run.agent if self.run is not None and self.run.parent_call_id is not None else None


@dataclass(slots=True)
class Timeline:
    """Entries and tool calls of a conversation, by `seq`, or of `runs` with their `model_turns`.

    `noted_calls` are those that branch notes name, by run and id. Of a history that is read for the model `is_complete`
    tells that only what a summary covers comes before its records; `memory` is what its user wants remembered, and
    `directory` that of the user's in which the conversation works, if it has no folder of its own. A history has only
    the model turns that have a replay.
    """

    records: list[Record]
    noted_calls: dict[tuple[str, str], ToolCall] = field(default_factory=dict[tuple[str, str], ToolCall])
    is_complete: bool = True
    memory: str = ""
    directory: str | None = None
    runs: list[Run] = field(default_factory=list[Run])
    model_turns: list[ModelTurn] = field(default_factory=list[ModelTurn])

    @property
    def entries(self) -> list[Entry]:
        return [record for record in self.records if isinstance(record, Entry)]

    @property
    def calls(self) -> list[ToolCall]:
        return [record for record in self.records if isinstance(record, ToolCall)]

    def of_run(self, run_id: str) -> "Timeline":
        return Timeline(
            [record for record in self.records if record.run_id == run_id],
            runs=[run for run in self.runs if run.id == run_id],
            model_turns=[turn for turn in self.model_turns if turn.run_id == run_id],
        )

    def find_first(self, kind: EntryKind) -> Entry | None:
        return next((entry for entry in self.entries if entry.kind == kind), None)

    def find_last(self, kind: EntryKind) -> Entry | None:
        return next((entry for entry in reversed(self.entries) if entry.kind == kind), None)
