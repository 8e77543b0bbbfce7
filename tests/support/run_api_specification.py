"""The run API's contract as a client of its specification has it: names, types and enums, and nothing that was added.

Such a client reads with Pydantic, passes over fields that it does not know, and keeps a conversation in LiteLLM's
`Message`, whose content is a text.
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
"""The events of a stream by their names; None: the specification says nothing of their data."""
