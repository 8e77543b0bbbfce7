"""Ids of conversations and runs, and the names that programs give their chats at the run API."""

import re

from backend.errors import InvalidRequest

PATTERN = r"[A-Za-z0-9._-]{1,100}"
OPENAPI = "openapi.json"
"""Names no chat: the schema of the run API has this path."""
_PATTERN = re.compile(PATTERN)
_GENERATED = re.compile(r"thr_.*|[a-z]+_[0-9a-f]{32}")


def is_generated(chat_id: str) -> bool:
    """Whether a chat's id has the form of one that the server makes: such a chat is looked up, and never created."""
    return _GENERATED.fullmatch(chat_id) is not None


def is_valid(name_or_id: str) -> bool:
    """Whether a text has the form of an id or a name: nothing else can be looked up."""
    return _PATTERN.fullmatch(name_or_id) is not None


def check_chat_id(chat_id: str) -> None:
    """Raises `InvalidRequest` for what can name no chat."""
    if not is_valid(chat_id) or chat_id == OPENAPI or not chat_id.strip("."):
        raise InvalidRequest(
            "Name a chat by its id, or by 1 to 100 letters, digits, dots, dashes and underscores. "
            f"Dots alone and {OPENAPI} are not allowed."
        )
