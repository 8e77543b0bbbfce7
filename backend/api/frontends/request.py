"""Requests to `/chat`: of all their messages only the user's last one counts, or what they decided."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictStr, ValidationError

from backend.cards.approvals import check_reason
from backend.conversations.conversations import check_chat_id
from backend.errors import InvalidRequest

_MAX_DECISIONS = 100
_NO_TEXT = "No text content provided. Write what you want the assistant to do."
_NOTHING_NEW = (
    "There is nothing new after the assistant's message. Send a message of the user, or decide the waiting approval at "
    "/chats/{threadId}/interactions/{interactionId}/approve."
)
_TOOL_TYPES = ("tool-", "dynamic-tool")  # how the types of parts begin that show a tool call
_REGENERATE = "regenerate-message"


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

    messages: list[Message] = Field(
        fail_fast=True, description="Only the messages of the user are read; the server has the history."
    )
    thread_id: StrictStr | None = Field(
        default=None, alias="threadId", description="A chat's id, or a name that its user chose."
    )
    id: StrictStr | None = Field(
        default=None, description="What `useChat` calls threadId; used if threadId is missing."
    )
    trigger: StrictStr | None = Field(default=None, description="`regenerate-message`: answer the message again.")
    approvals: list[ApprovalDecision] = Field(
        default=[], fail_fast=True, description="Decisions about waiting calls. No message is read then."
    )


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """`thread` names the chat. Without decisions `text` is the user's message, which `again` answers once more."""

    thread: str | None
    text: str = ""
    decisions: Sequence[ApprovalDecision] = ()
    again: bool = False


def parse_request(body: NewChat) -> ChatRequest:
    thread = body.thread_id or body.id or None
    if thread is not None:
        check_chat_id(thread)
    if decisions := _check_decisions(body.approvals) or _find_decisions(body.messages):
        if thread is None:
            raise InvalidRequest("Send the threadId of the chat that this decision belongs to.")
        return ChatRequest(thread, decisions=decisions)
    return ChatRequest(thread, _find_text(body.messages), again=body.trigger == _REGENERATE)


def _find_decisions(messages: Sequence[Message]) -> list[ApprovalDecision]:
    """Returns the decisions in the assistant's message, if that is the last one; all else in it is ignored."""
    if not messages or messages[-1].role not in ("assistant", "tool"):
        return []
    last = messages[-1]
    parts = [part for value in (last.parts, last.content) for part in _as_list(value) if isinstance(part, dict)]
    decided = [part for part in parts if part.get("state") == "approval-responded"]
    try:
        found = [ApprovalDecision.model_validate(part.get("approval")) for part in decided]
    except ValidationError:
        raise InvalidRequest("An approval needs an id and approved (true or false). A reason is optional.") from None
    if not found and any(str(part.get("type")).startswith(_TOOL_TYPES) for part in parts):  # it was answered already
        raise InvalidRequest(_NOTHING_NEW)
    return _check_decisions(found)


def _check_decisions(decisions: Sequence[ApprovalDecision]) -> list[ApprovalDecision]:
    by_id = {one.id: one.model_copy(update={"reason": check_reason(one.reason)}) for one in decisions}
    if len(by_id) != len(decisions) or len(decisions) > _MAX_DECISIONS:
        raise InvalidRequest(f"Decide each approval once, and up to {_MAX_DECISIONS} in one request.")
    return [*by_id.values()]


def _find_text(messages: Sequence[Message]) -> str:
    last = next((one for one in reversed(messages) if one.role == "user"), None)
    if last is None:
        raise InvalidRequest(_NO_TEXT)
    content = last.content or last.parts
    if isinstance(content, str):
        texts = [content]
    else:
        texts = [text for part in _as_list(content) if (text := _get_text(part)) is not None]
    if not any(texts):
        raise InvalidRequest(_NO_TEXT)
    return "\n".join(texts)


def _get_text(part: Any) -> str | None:
    """Returns the text of a part; None for data that a client keeps in a message for itself."""
    match part:
        case {"type": "text", "text": str(text)}:
            return text
        case {"type": str(kind)} if kind.startswith("data-"):
            return None
        case {"type": str(kind)}:
            raise InvalidRequest(
                f"This assistant reads text only, not parts of the type {kind[:40]!r}. Write it in words."
            )
        case _:
            raise InvalidRequest(
                'Each part of a message must be an object with a type, like {"type": "text", "text": "…"}.'
            )


def _as_list(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list) else ()
