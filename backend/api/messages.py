"""Messages of users, for every API: their checks, what is stored of them, and their parts."""

from collections.abc import Sequence
from typing import Any

from chatkit import types as ck
from pydantic import TypeAdapter

from backend.cards.current_tasks import load_titles
from backend.context import tags
from backend.conversations.run_requests import MessageTime, UserMessage
from backend.errors import BackendError, InvalidRequest
from backend.tools.task_tools import TaskTools
from common.text import is_visible

Content = Sequence[ck.UserMessageContent]

_CONTENT = TypeAdapter[list[ck.UserMessageContent]](list[ck.UserMessageContent])


class MessageTooLong(BackendError):
    """The message is too long."""

    code, status = "message_too_long", 400


def check_content(content: Content, *, max_chars: int, other_chars: int = 0) -> None:
    """Raises `MessageTooLong`, and `InvalidRequest` for invalid tags and for a message in which nothing can be seen.

    Of a tag only the id is stored, so its title does not count; `other_chars` are stored beside the content.
    """
    tags.numbers_of(content)
    length = other_chars + sum(len(part.text) for part in content if part.type != "input_tag")
    if length > max_chars:
        raise MessageTooLong(f"The message has {length:,} characters, and the limit is {max_chars:,}. Split it up.")
    if not any(part.type == "input_tag" or is_visible(part.text) for part in content):
        raise InvalidRequest("The message is empty. Write what you want the assistant to do.")


async def create_message(
    message_id: str, content: Content, tools: TaskTools, *, user_id: str, moment: MessageTime | None
) -> UserMessage:
    """Creates a message to be stored, with the titles that its tasks have now; raises `InvalidRequest` for invalid
    tags.
    """
    return build_message(message_id, await fill_titles(content, tools, user_id=user_id), moment=moment)


async def fill_titles(content: Content, tools: TaskTools, *, user_id: str) -> list[ck.UserMessageContent]:
    if numbers := tags.numbers_of(content):
        return tags.fill_tags(content, await load_titles(numbers, tools, user_id=user_id))
    return [*content]


def build_message(
    message_id: str, content: Content, *, quoted_text: str | None = None, moment: MessageTime | None
) -> UserMessage:
    """Builds a message whose tags have their titles; tags and a quote, which a text cannot hold, are in its details."""
    details: dict[str, Any] = {}
    if quoted_text or len(content) != 1 or content[0].type != "input_text":
        details["content"] = _CONTENT.dump_python(list(content), mode="json", exclude_none=True)
        details |= {"quoted_text": quoted_text} if quoted_text else {}
    text = tags.with_quote(tags.as_text(content), quoted_text)
    return UserMessage(message_id, text, details or None, moment)


def content_of(text: str, details: dict[str, Any] | None) -> list[ck.UserMessageContent]:
    stored = (details or {}).get("content")
    return _CONTENT.validate_python(stored) if stored else [ck.UserMessageTextContent(text=text)]
