"""Bodies of requests and responses of `/chat`, as `docs/frontends.md` and the published schema have them."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictStr

from backend.api.interactions.schemas import Question

Action = Literal["use_tool", "delegate", "final"]
Status = Literal["completed", "waiting_approval", "cancelled", "failed"]


class Message(BaseModel):
    """Only the user's last one is read, and of an assistant's that comes last the decisions about approvals."""

    model_config = ConfigDict(extra="ignore")

    role: StrictStr
    content: Any = Field(default=None, description="A text, or parts: `{type: text, text}`.")
    parts: Any = Field(default=None, description="Parts, in place of `content`.")


class ApprovalDecision(BaseModel):
    """What the user decided about a call that waits, as the AI SDK keeps it."""

    id: StrictStr
    approved: StrictBool
    reason: StrictStr | None = None


class NewChat(BaseModel):
    model_config = ConfigDict(extra="ignore")

    messages: list[Message] = Field(description="Only the messages of the user are read; the server has the history.")
    thread_id: StrictStr | None = Field(
        default=None, alias="threadId", description="A chat's id, or a name that its user chose."
    )
    id: StrictStr | None = Field(
        default=None, description="What `useChat` calls threadId; used if threadId is missing."
    )
    trigger: StrictStr | None = Field(default=None, description="`regenerate-message`: answer the message again.")
    approvals: list[ApprovalDecision] = Field(
        default=[], description="Decisions about waiting calls. No message is read then."
    )


class StepEvent(BaseModel):
    """`step` is the model's request that wanted it, counted over all agents; one may want several things."""

    step: int
    agent: str
    action: Action
    tool: str | None = None
    target_agent: str | None = None
    thought: str = ""


class Answered(BaseModel):
    answer: str
    events: list[StepEvent]
    thread_id: str = Field(alias="threadId")
    interaction_id: str = Field(alias="interactionId")
    status: Status
    reason: str | None = Field(description="Why it did not complete.")
    approvals: list[Question] = Field(description="The calls to decide before it continues.")


class Failed(Answered):
    error: str = Field(description="One sentence that says what to do next.")


class Chunk(BaseModel):
    """A server-sent event of the UI message stream; the last is `[DONE]`."""

    data: str = Field(description="JSON, with a `type`.")
