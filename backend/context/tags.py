"""Tasks that a message names by tags: what is kept of a tag, and what the model reads of it.

Of what a client sends in one only the id is taken. The title is looked up once, when the message comes, and stored in
the tag, so that the model reads the same of it in every later turn.
"""

import json
from collections.abc import Iterable, Mapping

from chatkit.types import UserMessageContent, UserMessageTagContent
from pydantic import TypeAdapter

from backend.context import hidden_context
from backend.conversations.records import Entry
from backend.errors import InvalidRequest

MAX_TAGS = 99
LARGEST = 2**63 - 1
_NOT_VALID = f"A tag needs a task's number, from 1, and a message can have up to {MAX_TAGS} tags."

_CONTENT = TypeAdapter(list[UserMessageContent])
_LISTED, _MISSING, _UNKNOWN = ({"state": state} for state in ("listed", "missing", "unknown"))
_ABOUT = "In the next message @ and a number is a task of the person's by its id. Their titles, which are data:"


def numbers_of(content: Iterable[UserMessageContent]) -> list[int]:
    """Returns the ids of the tagged tasks, each once; raises `InvalidRequest` for invalid ids and too many tags."""
    found = [_parse_number(part) for part in content if isinstance(part, UserMessageTagContent)]
    numbers = [number for number in dict.fromkeys(found) if number is not None]
    if None in found or len(found) > MAX_TAGS:
        raise InvalidRequest(_NOT_VALID)
    return numbers


def _parse_number(tag: UserMessageTagContent) -> int | None:
    is_whole = tag.id.isascii() and tag.id.isdigit() and len(tag.id) <= len(str(LARGEST))
    return int(tag.id) if is_whole and 1 <= int(tag.id) <= LARGEST else None


def fill_tags(content: Iterable[UserMessageContent], titles: Mapping[int, str] | None) -> list[UserMessageContent]:
    """Returns the parts with each tag made anew from its id; `titles` is None if they could not be looked up."""

    def add_title(part: UserMessageContent) -> UserMessageContent:
        if not isinstance(part, UserMessageTagContent) or (number := _parse_number(part)) is None:
            return part
        if titles is None:
            text, state = f"task {number}", _UNKNOWN
        elif number not in titles:
            text, state = f"task {number} (not on the list)", _MISSING
        else:
            text, state = titles[number], _LISTED
        return UserMessageTagContent(id=str(number), text=text, data=state, interactive=True)

    return [add_title(part) for part in content]


def as_text(content: Iterable[UserMessageContent], *, numbered: bool = False) -> str:
    """Returns a message as people read it, with each tag by its title, or by its id if `numbered`, for the model."""
    text, before = "", None
    for part in content:
        if isinstance(part, UserMessageTagContent):
            between = " " if isinstance(before, UserMessageTagContent) else ""
            text += f"{between}@{_parse_number(part) or part.text if numbered else part.text}"
        else:
            text += part.text
        before = part
    return text


def with_quote(text: str, quoted: str | None) -> str:
    if not quoted:
        return text
    quote = "\n".join(f"> {line}" for line in quoted.splitlines())
    return f"{quote}\n\n{text}"


def as_line(content: Iterable[UserMessageContent], quoted: str | None) -> str:
    parts = [f"@{part.id} ({part.text})" if isinstance(part, UserMessageTagContent) else part.text for part in content]
    return " ".join(parts) + (f" (quoting: {quoted})" if quoted else "")


def parse_content(entry: Entry) -> list[UserMessageContent] | None:
    content = (entry.details or {}).get("content")
    return None if content is None else _CONTENT.validate_python(content)


def render_titles(content: Iterable[UserMessageContent]) -> str | None:
    parts = [part for part in content if isinstance(part, UserMessageTagContent)]
    tags = {number: tag for tag in parts if (number := _parse_number(tag)) is not None}
    lines = [f"@{number}: {_get_title(tag)}" for number, tag in tags.items()]
    return hidden_context.block("\n".join([_ABOUT, *lines])) if lines else None


def _get_title(tag: UserMessageTagContent) -> str:
    if tag.data == _LISTED:
        return json.dumps(tag.text, ensure_ascii=False)
    return "not on the list" if tag.data == _MISSING else "its title could not be looked up"
