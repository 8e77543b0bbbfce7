"""What a request to `/chat` asks for: of all the messages in it, the last one of the person, or what they decided."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from backend.cards.approval_card import checked_reason
from backend.conversation import chats
from backend.conversation.errors import InvalidRequest
from backend.doors.chat.shapes import ApprovalDecision, Message, NewChat

_MOST_DECISIONS = 100
_NO_TEXT = "No text content provided. Write what you want the assistant to do."
_NOTHING_NEW = (
    "There is nothing new after the assistant's message. Send a message of the user, or decide the waiting approval at "
    "/chats/{threadId}/interactions/{interactionId}/approve."
)
_OF_TOOLS = ("tool-", "dynamic-tool")  # so types of parts begin
_REGENERATE = "regenerate-message"


@dataclass(frozen=True)
class Asked:
    """`thread` names the chat. Where nothing was decided, `text` is said; `again`, where it was said before."""

    thread: str | None
    text: str = ""
    decisions: Sequence[ApprovalDecision] = ()
    again: bool = False


def asked(given: NewChat) -> Asked:
    """Raises `InvalidRequest` with a sentence that says what is wrong with it."""
    thread = given.thread_id or given.id or None
    if thread is not None:
        chats.check(thread)
    if decisions := _checked(given.approvals) or _decisions(given.messages):
        if thread is None:
            raise InvalidRequest("Send the threadId of the chat that this decision belongs to.")
        return Asked(thread, decisions=decisions)
    return Asked(thread, _text(given.messages), again=given.trigger == _REGENERATE)


def _decisions(messages: Sequence[Message]) -> list[ApprovalDecision]:
    """What was decided in the assistant's message, where that is the last; nothing else is taken of it."""
    if not messages or messages[-1].role not in ("assistant", "tool"):
        return []
    last = messages[-1]
    parts = [part for given in (last.parts, last.content) for part in _listed(given) if isinstance(part, dict)]
    try:
        found = [ApprovalDecision.model_validate(part.get("approval")) for part in parts if _is_decided(part)]
    except ValidationError:
        raise InvalidRequest("An approval needs an id and approved (true or false). A reason is optional.") from None
    if not found and any(str(part.get("type")).startswith(_OF_TOOLS) for part in parts):  # what was said is done
        raise InvalidRequest(_NOTHING_NEW)
    return _checked(found)


def _checked(decisions: Sequence[ApprovalDecision]) -> list[ApprovalDecision]:
    by_id = {one.id: one.model_copy(update={"reason": checked_reason(one.reason)}) for one in decisions}
    if len(by_id) != len(decisions) or len(decisions) > _MOST_DECISIONS:
        raise InvalidRequest(f"Decide each approval once, and up to {_MOST_DECISIONS} in one request.")
    return [*by_id.values()]


def _is_decided(part: dict[str, Any]) -> bool:
    return part.get("state") == "approval-responded"


def _text(messages: Sequence[Message]) -> str:
    """What the person said last."""
    said = next((one for one in reversed(messages) if one.role == "user"), None)
    if said is None:
        raise InvalidRequest(_NO_TEXT)
    given = said.content or said.parts
    texts = [given] if isinstance(given, str) else [text for part in _listed(given) if (text := _of(part)) is not None]
    if not any(texts):
        raise InvalidRequest(_NO_TEXT)
    return "\n".join(texts)


def _of(part: Any) -> str | None:
    """The text of a part; None of what a client keeps in a message for itself."""
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


def _listed(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list) else ()
