"""Bodies of requests and responses of the run API, as `docs/api.md` and the published schema have them."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Field, StrictBool, StrictInt, StrictStr, Tag

from backend.api.interactions.events import (
    EVENTS,
    AnswerEvent,
    Changes,
    Named,
    Question,
    Status,
    ThinkingEvent,
    ToolCallEvent,
    ToolResultEvent,
    Unread,
)
from backend.api.request_body import RequestBody

Mode = Literal["steer", "follow_up"]
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
    title: StrictStr | None = Field(default=None, description="Only in responses; ignored in requests.")


MessagePart = Annotated[TextPart | TaskPart, Field(discriminator="type")]
UserMessage = Annotated[
    Annotated[Text, Tag("text")]
    | Annotated[list[MessagePart], Field(min_length=1, max_length=200, fail_fast=True), Tag("parts")],
    Discriminator(lambda value: "parts" if isinstance(value, list) else "text"),
]
"""A text, or its parts where it names tasks."""


class _MessageBody(_RequestBody):
    model: StrictStr | None = Field(default=None, description="One of `LLM_MODELS`; null: `LLM_MODEL`.")
    metadata: dict[str, Any] = Field(default={}, description="`temperature`: a number from 0 to 2.")


class NewInteraction(_MessageBody):
    user_message: UserMessage = Field(description="The message: a text, or a list of parts.")


class Edit(_MessageBody):
    new_user_message: UserMessage = Field(description="The new message: a text, or a list of parts.")


class Decision(_RequestBody):
    approval_id: Text
    approved: StrictBool
    reason: StrictStr | None = Field(default=None, description="The user's words, which the model reads.")
    always: StrictBool = Field(
        default=False,
        description="Also allow further calls of this kind in this chat; for agents and tools of other MCP servers.",
    )


class NewMessage(_RequestBody):
    text: UserMessage = Field(description="The message: a text, or a list of parts.")
    mode: Mode = Field(
        description="`steer`: the model reads it in its next request. `follow_up`: the next interaction answers it."
    )


class Rename(RequestBody):
    title: StrictStr = Field(description="One line of 1 to 200 visible characters.")


class Branch(_RequestBody):
    interaction_id: StrictStr | None = Field(description="The last interaction to show; null: none.")


class DecisionResponse(BaseModel):
    status: Literal["processed"] = "processed"
    approval_id: str
    approved: bool


class CancelResponse(BaseModel):
    status: Literal["cancelling"] = "cancelling"
    interaction_id: str
    message: str


class MessageResponse(BaseModel):
    input_id: str
    dropped: list[str] = Field(default=[], description="The ids of waiting follow-ups that this `steer` replaced.")


class SteerResponse(BaseModel):
    status: Literal["steering"] = "steering"
    input_id: str


class DropResponse(BaseModel):
    status: Literal["dropped"] = "dropped"
    input_id: str


class BranchResponse(BaseModel):
    chat_id: str
    leaf: str | None


class CompactResponse(BaseModel):
    status: Literal["compacted", "nothing to compact"]
    messages: int = Field(description="How many further messages are summarised.")


AgentEvent = Annotated[ToolCallEvent | ToolResultEvent | ThinkingEvent | AnswerEvent, Field(discriminator="type")]


class StreamedEvent(BaseModel):
    """A server-sent event; `id` is where a reader goes on, and comments (`: keep-alive`) come between."""

    id: str | None = None
    event: str = Field(json_schema_extra={"enum": [*EVENTS]})
    data: str = Field(description="JSON.")


class AgentState(BaseModel):
    messages: list[dict[str, Any]] = Field(
        description="What the model is sent after this interaction, without instructions and memory."
    )


class Approval(Question):
    approved: bool | None = Field(description="null: not decided yet.")
    reason: str | None


class TokenCounts(BaseModel):
    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    reasoning_tokens: int = Field(default=0, description="Part of the output.")


class Usage(TokenCounts):
    """Of an interaction, the agents included."""

    model: str | None
    temperature: float | None = Field(default=None, description="null: it was not set.")
    by_agent: dict[str, TokenCounts] = Field(default={}, description="The part of each agent.")


class SteeringMessage(BaseModel):
    """A message that the model read while the interaction was running."""

    input_id: str
    text: str
    parts: list[MessagePart] = Field(description="The message as a list of texts and tasks.")
    created_at: datetime


class Interaction(BaseModel):
    id: str
    status: Status
    reason: str | None = Field(description="Why it did not complete.")
    user_message: str = Field(description="Empty if the message is no longer stored.")
    created_at: datetime
    completed_at: datetime | None
    usage: Usage | None = Field(description="null: no request to a model has ended.")
    steering_messages: list[SteeringMessage] = Field(description="Messages to it that the model has read.")
    agent_events: list[AgentEvent] = Field(description="Its calls, results, reasoning and answers.")
    approvals: list[Approval]
    changes: Changes
    named: Named = None
    unread: Unread = False
    siblings: list[str] = Field(description="The ids of its alternatives and its own, the oldest first.")
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
    after: int | None = Field(description="Send it as `after` to get the next page; null: there is none.")


class ChatHead(BaseModel):
    id: str = Field(description="The chat as the path names it, by its id or its name; in a list, its id.")
    chat_id: str = Field(description="Its id, `thr_…`, which is `thread_id` in ChatKit.")
    name: str | None = Field(description="The name that its user chose; null: none.")
    title: str | None
    created_at: datetime
    leaf: str | None = Field(description="The last interaction of the shown branch.")
    answering: str | None = Field(default=None, description="The interaction that is running.")


class UnreadMessage(BaseModel):
    """A message to a running interaction that no model has read."""

    input_id: str
    interaction_id: str
    text: str
    parts: list[MessagePart] = Field(description="The message as a list of texts and tasks.")
    mode: Mode
    is_queued: bool = Field(description="false: its interaction has ended, and no model will read it.")
    created_at: datetime


class Chat(ChatHead):
    interactions: list[Interaction] = Field(description="The newest of the shown branch, the oldest first.")
    has_more: bool = Field(description="Whether there are older ones.")
    before: str | None = Field(description="Send it as `before` to get the older ones; null: there are none.")
    unread: list[UnreadMessage] = Field(
        default=[], description="Messages to interactions of the shown branch that no model has read."
    )


class Chats(BaseModel):
    chats: list[ChatHead] = Field(description="The newest first.")
    has_more: bool
    after: str | None = Field(description="Send it as `after` to get the next page.")
