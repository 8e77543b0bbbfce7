"""The models of a client that was written from the specification of the run API, without our additions to it.

It ignores unknown fields, and stores a conversation as LiteLLM's `Message`, whose content is a string.
"""

from enum import StrEnum
from typing import Literal

from pydantic import BaseModel


class EventType(StrEnum):
    TOOL_CALL = "TOOL_CALL"
    TOOL_RESULT = "TOOL_RESULT"
    THINKING = "THINKING"
    ANSWER = "ANSWER"


class ToolCallEvent(BaseModel):
    type: EventType
    id: str
    tool_name: str
    tool_input: str


class ToolResultEvent(BaseModel):
    type: EventType
    id: str
    tool_name: str
    tool_output: str


class ThinkingEvent(BaseModel):
    type: EventType
    content: str


class AnswerEvent(BaseModel):
    type: EventType
    content: str


class Function(BaseModel):
    name: str | None
    arguments: str


class ChatCompletionMessageToolCall(BaseModel):
    id: str
    type: str
    function: Function


class Message(BaseModel):
    role: Literal["assistant", "user", "system", "tool", "function"]
    content: str | None = None
    tool_calls: list[ChatCompletionMessageToolCall] | None = None
    tool_call_id: str | None = None


class AgentState(BaseModel):
    messages: list[Message]


class InteractionStatus(StrEnum):
    RUNNING = "RUNNING"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"
    WAITING_APPROVAL = "WAITING_APPROVAL"


class Interaction(BaseModel):
    id: str
    status: InteractionStatus
    user_message: str
    agent_events: list[ToolCallEvent | ToolResultEvent | ThinkingEvent | AnswerEvent]
    final_agent_state: AgentState | None
    created_at: str
    completed_at: str | None


class Chat(BaseModel):
    id: str
    interactions: list[Interaction]
    created_at: str


class InteractionComplete(BaseModel):
    interaction_id: str
    status: InteractionStatus


class Approved(BaseModel):
    status: Literal["processed"]
    approval_id: str
    approved: bool


class Cancelling(BaseModel):
    status: Literal["cancelling"]
    interaction_id: str
    message: str


STREAMED: dict[str, type[BaseModel] | None] = {
    "interaction_started": None,
    "tool_call": ToolCallEvent,
    "tool_result": ToolResultEvent,
    "thinking": ThinkingEvent,
    "answer": AnswerEvent,
    "approval_required": None,
    "approved": None,
    "rejected": None,
    "cancelled": None,
    "error": None,
    "interaction_complete": InteractionComplete,
}
"""The models of stream events by name; None if the specification does not define the data."""
