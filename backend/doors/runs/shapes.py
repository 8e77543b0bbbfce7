"""What goes in and out at the run API: the fields, as `docs/runs.md` and the published schema have them."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictStr

from backend.doors.runs.rendering import Name, Status

Text = Annotated[StrictStr, Field(min_length=1)]


class _Asked(BaseModel):
    model_config = ConfigDict(extra="ignore", json_schema_serialization_defaults_required=True)


class _Answered(_Asked):
    model: StrictStr | None = Field(default=None, description="One of `LLM_MODELS`; null: the one that is set.")
    metadata: dict[str, Any] = Field(default={}, description="`temperature`: a number from 0 to 2.")


class NewInteraction(_Answered):
    user_message: Text = Field(description="What the person says.")


class Edit(_Answered):
    new_user_message: Text = Field(description="What the person says instead.")


class Decision(_Asked):
    approval_id: Text
    approved: StrictBool
    reason: StrictStr | None = Field(default=None, description="Told to the model, in words of the person's own.")
    always: StrictBool = Field(default=False, description="Approved for all of this chat, where that may be: agents.")


class NewMessage(_Asked):
    text: Text
    mode: Literal["steer", "follow_up"] = Field(
        description="`steer`: read before the model is asked again. `follow_up`: answered after the natural end."
    )


class Branch(_Asked):
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


class Branched(BaseModel):
    chat_id: str
    leaf: str | None


class Compacted(BaseModel):
    status: Literal["compacted", "nothing to compact"]
    messages: int = Field(description="How many messages are summarised that were not before.")


Answer = Decided | Cancelling | Queued | Branched | Compacted


class ToolCallEvent(BaseModel):
    type: Literal["TOOL_CALL"]
    id: str
    tool_name: str
    tool_input: str = Field(description="JSON.")


class ToolResultEvent(BaseModel):
    model_config = ConfigDict(extra="allow")  # `is_error` and `details`, which the new core has

    type: Literal["TOOL_RESULT"]
    id: str = Field(description="That of the call.")
    tool_name: str
    tool_output: str


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
    details: dict[str, Any] | None = Field(description="Beside it: exit code and output of a command, a file's diff.")
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
    input: str | None = Field(description="What the person said, or a call's arguments as JSON.")
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
    name: str | None = Field(description="The name that its person chose: it stands for the id everywhere.")
    title: str | None
    created_at: datetime
    leaf: str | None = Field(description="The last interaction of the path that is shown.")


class Chat(ChatHead):
    interactions: list[Interaction] = Field(description="The newest of the path that is shown, in the order of time.")
    has_more: bool = Field(description="Whether there are older ones.")
    before: str | None = Field(description="Where the page with the next older ones ends; null where there is none.")


class Chats(BaseModel):
    chats: list[ChatHead] = Field(description="The newest first.")
    has_more: bool
    after: str | None = Field(description="Where the next page begins.")
