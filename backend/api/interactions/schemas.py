"""Bodies of requests and responses of the run API, as `docs/api.md` and the published schema have them."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Field, StrictBool, StrictInt, StrictStr, Tag

Name = Literal[
    "interaction_started",
    "turn_start",
    "turn_end",
    "thinking_delta",
    "thinking",
    "answer_delta",
    "answer",
    "tool_call",
    "tool_result",
    "approval_required",
    "approved",
    "rejected",
    "error",
    "cancelled",
    "compaction",
    "interaction_complete",
]
Mode = Literal["steer", "follow_up"]
Status = Literal["RUNNING", "WAITING_APPROVAL", "COMPLETED", "FAILED", "CANCELLED"]
Text = Annotated[StrictStr, Field(min_length=1)]


class _RequestBody(BaseModel):
    model_config = ConfigDict(extra="ignore", json_schema_serialization_defaults_required=True)


class TextPart(_RequestBody):
    type: Literal["text"]
    text: Text


class TaskPart(_RequestBody):
    """A task that a message names; the model reads its title as it is when the message comes."""

    type: Literal["task"]
    task_id: StrictInt = Field(ge=1, lt=2**63)
    title: StrictStr | None = Field(default=None, description="In a response; in a request it is ignored.")


MessagePart = Annotated[TextPart | TaskPart, Field(discriminator="type")]
UserMessage = Annotated[
    Annotated[Text, Tag("text")] | Annotated[list[MessagePart], Field(min_length=1, max_length=200), Tag("parts")],
    Discriminator(lambda value: "parts" if isinstance(value, list) else "text"),
]
"""A text, or its parts where it names tasks."""


class _MessageBody(_RequestBody):
    model: StrictStr | None = Field(default=None, description="One of `LLM_MODELS`; null: the one that is set.")
    metadata: dict[str, Any] = Field(default={}, description="`temperature`: a number from 0 to 2.")


class NewInteraction(_MessageBody):
    user_message: UserMessage = Field(description="What the user says, a text or its parts.")


class Edit(_MessageBody):
    new_user_message: UserMessage = Field(description="What the user says instead, a text or its parts.")


class Decision(_RequestBody):
    approval_id: Text
    approved: StrictBool
    reason: StrictStr | None = Field(default=None, description="The user's words, which the model reads.")
    always: StrictBool = Field(default=False, description="Approved for all of this chat, where that may be: agents.")


class NewMessage(_RequestBody):
    text: UserMessage = Field(description="What the user says, a text or its parts.")
    mode: Mode = Field(
        description="`steer`: read before the model is asked again. `follow_up`: answered by the next interaction."
    )


class Branch(_RequestBody):
    interaction_id: StrictStr | None = Field(description="The last one to be shown; null: the one before the first.")


class Decided(BaseModel):
    status: Literal["processed"] = "processed"
    approval_id: str
    approved: bool


class Cancelling(BaseModel):
    status: Literal["cancelling"] = "cancelling"
    interaction_id: str
    message: str


class Queued(BaseModel):
    input_id: str
    dropped: list[str] = Field(default=[], description="The follow-ups that waited, and that a `steer` replaces.")


class Steering(BaseModel):
    status: Literal["steering"] = "steering"
    input_id: str


class Dropped(BaseModel):
    status: Literal["dropped"] = "dropped"
    input_id: str


class Branched(BaseModel):
    chat_id: str
    leaf: str | None


class Compacted(BaseModel):
    status: Literal["compacted", "nothing to compact"]
    messages: int = Field(description="How many messages are summarised that were not before.")


class ToolCallEvent(BaseModel):
    type: Literal["TOOL_CALL"]
    id: str
    tool_name: str
    tool_input: str = Field(description="JSON.")


class ToolResultEvent(BaseModel):
    type: Literal["TOOL_RESULT"]
    id: str = Field(description="That of the call.")
    tool_name: str
    tool_output: str
    is_error: bool = False
    details: dict[str, Any] | None = Field(
        default=None, description="Exit code and output of a command, a file's diff, tasks."
    )


class ThinkingEvent(BaseModel):
    type: Literal["THINKING"]
    content: str


class AnswerEvent(BaseModel):
    type: Literal["ANSWER"]
    content: str


AgentEvent = Annotated[ToolCallEvent | ToolResultEvent | ThinkingEvent | AnswerEvent, Field(discriminator="type")]


class Streamed(BaseModel):
    """A server-sent event; `id` is where a reader goes on, and comments (`: keep-alive`) come between."""

    id: str | None = None
    event: Name
    data: str = Field(description="JSON.")


class AgentState(BaseModel):
    messages: list[dict[str, Any]] = Field(
        description="What the model is sent after this interaction, without instructions and memory."
    )


class Approval(BaseModel):
    approval_id: str
    agent: str | None = Field(description="Of the agent that wants to make the call; null: the assistant does.")
    tool_name: str
    tool_input: str
    text: str
    approved: bool | None = Field(description="null: not decided yet.")
    reason: str | None


class Interaction(BaseModel):
    id: str
    status: Status
    reason: str | None = Field(description="Why it did not come to its end.")
    user_message: str = Field(description="Empty where the message is not known any more.")
    created_at: datetime
    completed_at: datetime | None
    usage: dict[str, Any] | None = Field(
        description="`model`, `requests`, `input_tokens`, `output_tokens`, of which `reasoning_tokens` were thought; "
        "`temperature` if one was asked for; `by_agent` what agents have used of it."
    )
    agent_events: list[AgentEvent] = Field(description="Its calls, their results, its thoughts and its answers.")
    approvals: list[Approval]
    siblings: list[str] = Field(description="All versions of it, itself among them, the oldest first.")
    final_agent_state: AgentState | None = Field(description="null until it has ended.")


class Step(BaseModel):
    """Of an agent at work: `task`, then `step` after `step` of its model, an `output` for each call, and its `end`."""

    number: int
    call_id: str = Field(description="The assistant's call that started the agent.")
    agent: str
    kind: Literal["task", "step", "output", "end"]
    content: dict[str, Any] = Field(description="What the agent's model said and read.")
    details: dict[str, Any] | None = Field(description="Exit code and output of a command, a file's diff.")
    created_at: datetime


class Steps(BaseModel):
    steps: list[Step]
    after: int | None = Field(description="Where the next page begins; null where there is none.")


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
    turn: int | None = Field(description="From 1, on each path.")
    actor: Literal["user", "assistant", "tool", "system"] | None
    model: str | None
    input: str | None = Field(description="What the user said, or a call's arguments as JSON.")
    output: str | None = Field(description="What the assistant said, or what a call returned.")
    tool_name: str | None
    prompt_tokens: int | None
    completion_tokens: int | None
    thinking_tokens: int | None
    latency_ms: int | None
    error: str | None
    id: str
    parent_id: str | None = Field(
        description="The line that it goes on from, or of a chat's first, the chat it replaced."
    )
    run_id: str | None
    agent: str | None


class ChatHead(BaseModel):
    id: str = Field(description="As the request names the chat; in a list, its own id.")
    chat_id: str = Field(description="The same.")
    name: str | None = Field(description="The name that its user chose, which can be used in place of the id.")
    title: str | None
    created_at: datetime
    leaf: str | None = Field(description="The last interaction of the path that is shown.")
    answering: str | None = Field(default=None, description="The interaction that is running.")


class UnreadMessage(BaseModel):
    """A message to a running interaction that no model has read."""

    input_id: str
    interaction_id: str
    text: str
    parts: list[MessagePart] = Field(description="The same; each task that it names is a part.")
    mode: Mode
    is_queued: bool = Field(description="false: its interaction has ended, and no model will read it.")
    created_at: datetime


class Chat(ChatHead):
    interactions: list[Interaction] = Field(description="The newest of the path that is shown, in the order of time.")
    has_more: bool = Field(description="Whether there are older ones.")
    before: str | None = Field(description="Where the page with the next older ones ends; null where there is none.")
    unread: list[UnreadMessage] = Field(
        default=[], description="Messages to interactions of the shown path that no model has read."
    )


class Chats(BaseModel):
    chats: list[ChatHead] = Field(description="The newest first.")
    has_more: bool
    after: str | None = Field(description="Where the next page begins.")
