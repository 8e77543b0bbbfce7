"""Checks of what users write, the same for every API."""

from backend.errors import BackendError, InvalidRequest
from service.database.text import can_be_seen


class MessageTooLong(BackendError):
    """The message is too long."""

    code, status = "message_too_long", 400


def check_text(text: str, *, most_chars: int) -> None:
    """Raises `MessageTooLong`, or `InvalidRequest` for a text in which nothing can be seen."""
    if len(text) > most_chars:
        raise MessageTooLong(f"The message has {len(text):,} characters, and the limit is {most_chars:,}. Split it up.")
    if not can_be_seen(text):
        raise InvalidRequest("The message is empty. Write what you want the assistant to do.")
