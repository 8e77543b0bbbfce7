"""The types of the tools' arguments: what is published, what odd spellings are taken for, and what is refused."""

import json
from contextlib import suppress
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints

from service.database.text import is_line, without_heaps, without_unseen
from service.tokens import is_user_id
from service.tool_server.meta import is_plain

MAX_ID = 2**63 - 1
_MOST_LOOKED_AT = 16_000  # characters: looking at one takes as long as reading a hundred
_LONGEST_WORDS = 300  # characters
_LONGEST_QUERY, _MOST_WORDS = 200, 20  # characters, words
_LONGEST_CURSOR = 2_000  # characters; it holds what the list was asked for
_BREAKS = "\n\r\t\u2028\u2029"

# What each argument may be, to complete the sentence "<name> must be …"; of one tool, where it differs there.
RULES = {
    "user_id": "text of 1 to 200 characters without control characters, or left out",
    "title": "1 to 200 characters on one line, not counting spaces around it",
    "description": "text of at most 4,000 characters without control characters other than line breaks and tabs",
    "task_id": "the whole number of a task, as list_tasks shows it",
    "status": "pending or completed",
    "list_tasks.status": "pending, completed, all or deleted",
    "query": "text to look for, of at most 200 characters and 20 words",
    "also": "a list of at most 99 whole numbers of tasks, as list_tasks shows them",
    "add_task.also": "a list of at most 50 titles, each of 1 to 200 characters on one line",
    "due": "text such as Fri 2026-11-27 15:00, tomorrow, +1w or none",
    "list_tasks.due": "overdue, today, none, any, a day, or a range of days such as 2026-11-23..2026-11-29",
    "done": "a day or a range of days, such as 2026-11-16..2026-11-22",
    "priority": "high, medium, low or none",
    "labels": "a list of at most 10 texts",
    "add_labels": "a list of at most 10 texts",
    "remove_labels": "a list of at most 10 texts",
    "label": "one label",
    "repeat": "an RRULE such as FREQ=WEEKLY;BYDAY=MO, or none",
    "undo": "true, or left out",
    "order": "created, due, priority or completed",
    "cursor": "the next_cursor of the page before, or left out",
    "limit": "a whole number from 1 to 100",
}


def _absent(value: Any) -> Any:
    """None for the spellings of "nothing" that models send."""
    return None if value in ("", "null") else value


def _absent_text(value: Any) -> Any:
    return None if value == "null" else value


def _number(value: Any) -> Any:
    if isinstance(value, bool):
        raise ValueError("a truth value is no number")
    return value


def _stored(number: int) -> int:
    if number > MAX_ID:
        raise ValueError("larger than any task's id can be")
    return number


def _seen(value: Any) -> Any:
    if isinstance(value, str) and len(value) > _MOST_LOOKED_AT:
        raise ValueError("too long, whatever of it can be seen")
    if not isinstance(value, str) or not is_plain(value, allowed=_BREAKS):
        return value
    return without_heaps(without_unseen(value))


def _title(text: str) -> str:
    if not is_line(text, longest=200):
        raise ValueError("not one line that can be seen")
    return text


def _one_line(text: str) -> str:
    """A user's id, held to what tokens may name.

    Checked here, and not published: a limit that no model needs to know costs tokens in each request.
    """
    if not is_user_id(text):
        raise ValueError("not one visible line")
    return text


def _position(text: str) -> str:
    if not (len(text) <= _LONGEST_CURSOR and is_plain(text)):
        raise ValueError("longer than any that was returned")
    return text


def _lines(text: str) -> str:
    if not is_plain(text, allowed=_BREAKS):
        raise ValueError("control characters")
    return text


_Line = Annotated[str, AfterValidator(_one_line)]
_Title = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=1, max_length=200),
    AfterValidator(_title),
    BeforeValidator(_seen),
]
_Text = Annotated[str, StringConstraints(max_length=4000), AfterValidator(_lines), BeforeValidator(_seen)]


def _list(value: Any) -> Any:
    """What models send instead of a list: its JSON as text, or nothing."""
    if isinstance(value, str) and value.strip().startswith("[") and len(value) <= _MOST_LOOKED_AT:
        with suppress(ValueError, RecursionError):
            value = json.loads(value)
    return None if value in ("", "null", []) else value


def _flag(value: Any) -> Any:
    """What models send for yes and for no."""
    if value in ("false", "", "null") or value is False:
        return None
    return True if value == "true" else value


def _words(text: str) -> str:
    """A short text; its length is not published, as a user's is not."""
    if not 1 <= len(text) <= _LONGEST_WORDS:
        raise ValueError("empty, or too long")
    return _lines(text)


def _query(text: str) -> str:
    if len(text) > _LONGEST_QUERY or len(text.split()) > _MOST_WORDS:
        raise ValueError("too much to look for")
    return _words(text)


_Words = Annotated[str, StringConstraints(strip_whitespace=True), AfterValidator(_words), BeforeValidator(_seen)]
_Query = Annotated[str, StringConstraints(strip_whitespace=True), AfterValidator(_query), BeforeValidator(_seen)]
_Texts = Annotated[list[_Words], Field(max_length=10)]
_Limit = Annotated[int, Field(ge=1, le=100), BeforeValidator(_number)]
_Id = Annotated[int, Field(ge=1), AfterValidator(_stored), BeforeValidator(_number)]
Status = Literal["pending", "completed", "all", "deleted"]
Order = Literal["created", "due", "priority", "completed"]
Priority = Literal["high", "medium", "low", "none"]

UserId = Annotated[
    _Line | None, BeforeValidator(_absent), Field(description="Whose tasks; leave out: your own is used.")
]
Title = Annotated[_Title, Field(description="What is to be done, on one line.")]
NewTitle = Annotated[_Title | None, BeforeValidator(_absent), Field(description="A new one.")]
Description = Annotated[_Text | None, BeforeValidator(_absent_text), Field(description="Details, if any.")]
NewDescription = Annotated[_Text | None, BeforeValidator(_absent_text), Field(description='"" clears it.')]
TaskId = Annotated[
    int,
    Field(description="The task's id, from list_tasks.", ge=1),
    AfterValidator(_stored),
    BeforeValidator(_number),
]
StatusFilter = Annotated[
    Status | None, BeforeValidator(_absent), Field(description="deleted: in the last 30 days, undo restores.")
]
Query = Annotated[
    _Query | None,
    BeforeValidator(_absent),
    Field(description="Words in title, description or labels; if none fits, nearest has what is near."),
]
Cursor = Annotated[
    Annotated[str, AfterValidator(_position)] | None,
    BeforeValidator(_absent),
    Field(description="next_cursor of the page before."),
]
Limit = Annotated[_Limit | None, BeforeValidator(_absent), Field(description="At most.")]
AlsoTitles = Annotated[
    Annotated[list[_Title], Field(max_length=50)] | None,
    BeforeValidator(_list),
    Field(description="Titles of more tasks with the same details."),
]
AlsoIds = Annotated[
    Annotated[list[_Id], Field(max_length=99)] | None,
    BeforeValidator(_list),
    Field(description="Ids of more tasks."),
]
Due = Annotated[
    _Words | None,
    BeforeValidator(_absent),
    Field(description="Fri 2026-11-27, with a time Fri 2026-11-27 15:00; also tomorrow, Friday, 15:00, none."),
]
NewDue = Annotated[
    _Words | None,
    BeforeValidator(_absent),
    Field(description="As in add_task; also +1w, -2d, +1m later or earlier; next skips one of a repeat."),
]
DueRange = Annotated[
    _Words | None,
    BeforeValidator(_absent),
    Field(description="overdue, today, none, any, a day, or days a..b, ..b, a.."),
]
DoneRange = Annotated[_Words | None, BeforeValidator(_absent), Field(description="Completed on a day, or days a..b.")]
NewPriority = Annotated[Priority | None, BeforeValidator(_absent), Field(description="How much it matters.")]
PriorityFilter = Annotated[Priority | None, BeforeValidator(_absent), Field(description="Only these.")]
Labels = Annotated[_Texts | None, BeforeValidator(_list), Field(description="Such as work.")]
NewLabels = Annotated[_Texts | None, BeforeValidator(_list), Field(description="Instead of those it has.")]
MoreLabels = Annotated[_Texts | None, BeforeValidator(_list), Field(description="To put on.")]
FewerLabels = Annotated[_Texts | None, BeforeValidator(_list), Field(description="To take off.")]
Label = Annotated[_Words | None, BeforeValidator(_absent), Field(description="Only with this label.")]
Repeat = Annotated[
    _Words | None,
    BeforeValidator(_absent),
    Field(description="RRULE: FREQ=WEEKLY;BYDAY=MO. FROM=DONE counts from completion."),
]
NewRepeat = Annotated[_Words | None, BeforeValidator(_absent), Field(description="As in add_task; none ends it.")]
NewStatus = Annotated[
    Literal["pending", "completed"] | None, BeforeValidator(_absent), Field(description="pending opens it again.")
]
Undo = Annotated[
    Literal[True] | None,
    BeforeValidator(_flag),
    Field(description="Take back its last change, a deletion too; with nothing but task_id and also."),
]
OrderBy = Annotated[Order | None, BeforeValidator(_absent), Field(description="What comes first.")]
