"""Messages of users: from ChatKit's input to what is stored, and from what is stored to ChatKit's items."""

from typing import Any

from chatkit import types as ck
from pydantic import TypeAdapter

from backend.context import tags
from backend.conversations.runs import Message, Moment

_CONTENT = TypeAdapter[list[ck.UserMessageContent]](list[ck.UserMessageContent])


def create_message(
    message_id: str, message: ck.UserMessageInput | ck.UserMessageItem, *, moment: Moment | None
) -> Message:
    """A message to be stored. What a plain text cannot hold, tags and a quote, is in its details."""
    details: dict[str, Any] = {}
    content = message.content
    if message.quoted_text or len(content) != 1 or content[0].type != "input_text":
        details["content"] = _CONTENT.dump_python(content, mode="json", exclude_none=True)
        details |= {"quoted_text": message.quoted_text} if message.quoted_text else {}
    text = tags.with_quote(tags.as_text(content), message.quoted_text)
    return Message(message_id, text, details or None, moment)


def content_of(text: str, details: dict[str, Any] | None) -> list[ck.UserMessageContent]:
    """The parts of a stored message."""
    stored = (details or {}).get("content")
    return _CONTENT.validate_python(stored) if stored else [ck.UserMessageTextContent(text=text)]
