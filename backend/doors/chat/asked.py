"""What a request to `/chat` asks for: of all the messages in it, the last one of the person, or what they decided."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, StrictBool, StrictStr, ValidationError

from backend.conversation import chats
from backend.conversation.errors import InvalidRequest
from backend.doors.chat.shapes import Message, NewChat
from backend.tools.consent.card import checked_reason

MOST_VALUES = 20_000  # of a body: front ends send all that was said so far with each message
_MOST_DECISIONS = 100
_NO_TEXT = "No text content provided: write what you want to have done."
_NOTHING_NEW = (
    "Nothing was said or decided since the assistant's message: send a message of the person, or decide what waits at "
    "/chats/{threadId}/interactions/{interactionId}/approve."
)
_OF_TOOLS = ("tool-", "dynamic-tool")  # so types of parts begin
_REGENERATE = "regenerate-message"


class Decision(BaseModel):
    """What the person says to a call that waits, as the AI SDK keeps it."""

    id: StrictStr
    approved: StrictBool
    reason: StrictStr | None = None


@dataclass(frozen=True)
class Asked:
    """`thread` names the chat. Where nothing was decided, `text` is said; `again`, where it was said before."""

    thread: str | None
    text: str = ""
    decisions: Sequence[Decision] = ()
    again: bool = False


def asked(given: NewChat) -> Asked:
    """Raises `InvalidRequest` with a sentence that says what is wrong with it."""
    thread = given.thread_id or given.id or None
    if thread is not None:
        chats.check(thread)
    if decisions := _decisions(given.messages):
        if thread is None:
            raise InvalidRequest("Say in which chat this is decided: send its threadId.")
        return Asked(thread, decisions=decisions)
    return Asked(thread, _text(given.messages), again=given.trigger == _REGENERATE)


def _decisions(messages: Sequence[Message]) -> list[Decision]:
    """What was decided in the assistant's message, where that is the last; nothing else is taken of it."""
    if not messages or messages[-1].role not in ("assistant", "tool"):
        return []
    last = messages[-1]
    parts = [part for given in (last.parts, last.content) for part in _listed(given) if isinstance(part, dict)]
    try:
        found = [Decision.model_validate(part.get("approval")) for part in parts if _is_decided(part)]
    except ValidationError:
        raise InvalidRequest("An approval has its id, approved (true or false), and a reason if any.") from None
    if not found and any(str(part.get("type")).startswith(_OF_TOOLS) for part in parts):  # what was said is done
        raise InvalidRequest(_NOTHING_NEW)
    by_id = {one.id: one.model_copy(update={"reason": checked_reason(one.reason)}) for one in found}
    if len(by_id) != len(found) or len(found) > _MOST_DECISIONS:
        raise InvalidRequest(f"Each approval is decided once, and {_MOST_DECISIONS} at most in one request.")
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
            raise InvalidRequest(f"This assistant takes text, and no part of the type {kind[:40]!r}: say it in words.")
        case _:
            raise InvalidRequest('A part of a message is an object with a type, as {"type": "text", "text": "…"}.')


def _listed(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list) else ()
