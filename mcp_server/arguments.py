"""The types of the tools' arguments: what is published, what odd spellings are taken for, and what is refused."""

import json
from contextlib import suppress
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints

from common.text import is_single_line_text, is_storable, remove_invisible, remove_stacked_marks
from common.tokens import is_user_id

MAX_ID = 2**63 - 1
_MOST_LOOKED_AT = 16_000  # characters: looking at one takes as long as reading a hundred
_LONGEST_DESCRIPTION = 4_000  # characters
_LONGEST_WORDS = 300  # characters
_MOST_LABELS = 10  # of one argument
_LONGEST_QUERY, _MOST_WORDS = 200, 20  # characters, words
_LONGEST_CURSOR = 2_000  # characters; it holds what the list was asked for
_BREAKS = "\n\r\t\u2028\u2029"

# What each argument may be, to complete the sentence "<name> must be …"; of one tool, where it differs there.
RULES = {
    "user_id": "text of 1 to 200 characters without control characters, or empty",
    "title": "1 to 200 characters on one line, not counting spaces around it",
    "description": "text of at most 4,000 characters without control characters other than line breaks and tabs",
    "task_id": "the whole number of a task from list_tasks",
    "status": "pending or completed",
    "list_tasks.status": "pending, completed, all or deleted",
    "query": "text to search for, of at most 200 characters and 20 words",
    "also": "a list of at most 99 whole numbers of tasks from list_tasks",
    "add_task.also": "a list of at most 50 titles, each of 1 to 200 characters on one line",
    "due": "text such as Fri 2026-11-27 15:00, tomorrow, +1w or none",
    "list_tasks.due": "overdue, today, none, any, a day, or a range of days such as 2026-11-23..2026-11-29",
    "done": "a day or a range of days such as 2026-11-16..2026-11-22",
    "priority": "high, medium, low or none",
    "list_tasks.priority": "high, medium, low, none or any",
    "labels": "a list of at most 10 texts",
    "add_labels": "a list of at most 10 texts",
    "remove_labels": "a list of at most 10 texts",
    "label": "one label",
    "repeat": "an RRULE such as FREQ=WEEKLY;BYDAY=MO, or none",
    "undo": "true or false",
    "order": "created, due, priority or completed",
    "cursor": "the next_cursor of the page before, or empty",
    "limit": "a whole number from 1 to 100",
}

# The published default of each optional argument, which means "not given": clients that must send every argument send
# it (OpenAI's strict mode), and null is no choice, because some clients reject `anyOf` and null in a schema. It is
# never an empty text where an `enum` lists the values: Gemini rejects that.
KEEP = "keep"
NOT_GIVEN: dict[str, object] = {
    "user_id": "",
    "title": "",
    "description": "",
    "also": [],
    "due": "",
    "done": "",
    "query": "",
    "label": "",
    "labels": [],
    "add_labels": [],
    "remove_labels": [],
    "repeat": "",
    "undo": False,
    "cursor": "",
    "add_task.priority": "none",
    "list_tasks.priority": "any",
    "update_task.priority": KEEP,
    "status": KEEP,
}


def _absent(value: Any) -> Any:
    """None for the values that mean "not given", also for those that models invent."""
    return None if value in ("", "null") else value


def _absent_or_kept(value: Any) -> Any:
    return None if value == KEEP else _absent(value)


def _absent_or_any(value: Any) -> Any:
    return None if value == "any" else _absent(value)


def _absent_or_cleared(value: Any) -> Any:
    """An empty text for "none", because models that must send every argument send an empty text for "not given"."""
    return "" if value == "none" else _absent(value)


def _number(value: Any) -> Any:
    if isinstance(value, bool):
        raise ValueError("a truth value is no number")
    return value


def _stored(number: int) -> int:
    if not 1 <= number <= MAX_ID:
        raise ValueError("no task can have this id")
    return number


def _seen(value: Any) -> Any:
    if isinstance(value, str) and len(value) > _MOST_LOOKED_AT:
        raise ValueError("too long, whatever of it can be seen")
    if not isinstance(value, str) or not is_storable(value, allowed=_BREAKS):
        return value
    return remove_stacked_marks(remove_invisible(value))


def _title(text: str) -> str:
    if not is_single_line_text(text, longest=200):
        raise ValueError("not one line that can be seen")
    return text


def _one_line(text: str) -> str:
    """A user's id as tokens may name it.

    This limit and others are checked but not published: what a model seldom needs to know costs tokens in each request.
    """
    if not is_user_id(text):
        raise ValueError("not one visible line")
    return text


def _position(text: str) -> str:
    if not (len(text) <= _LONGEST_CURSOR and is_storable(text)):
        raise ValueError("longer than any that was returned")
    return text


def _description(text: str) -> str:
    if len(text) > _LONGEST_DESCRIPTION:
        raise ValueError("too long")
    return _lines(text)


def _lines(text: str) -> str:
    if not is_storable(text, allowed=_BREAKS):
        raise ValueError("control characters")
    return text


_Line = Annotated[str, AfterValidator(_one_line)]
_Title = Annotated[
    str,
    StringConstraints(strip_whitespace=True),
    AfterValidator(_title),
    BeforeValidator(_seen),
]
_Text = Annotated[str, AfterValidator(_description), BeforeValidator(_seen)]


def _list(value: Any) -> Any:
    """What models send instead of a list: its JSON as text, or nothing."""
    if isinstance(value, str) and value.strip().startswith("[") and len(value) <= _MOST_LOOKED_AT:
        with suppress(ValueError, RecursionError):
            value = json.loads(value)
    return None if value in ("", "null", []) else value


def _few(texts: list[str]) -> list[str]:
    if len(texts) > _MOST_LABELS:
        raise ValueError("too many")
    return texts


def _flag(value: Any) -> Any:
    """What models send for yes and for no; other than that, pydantic would take "on" and 1 for yes, too."""
    if value in ("false", "", "null") or value is False:
        return None
    if value not in (None, "true") and value is not True:
        raise ValueError("neither true nor false")
    return None if value is None else True


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
_Texts = Annotated[list[_Words], AfterValidator(_few)]
_Limit = Annotated[int, Field(ge=1, le=100), BeforeValidator(_number)]
_Id = Annotated[int, AfterValidator(_stored), BeforeValidator(_number)]
Status = Literal["pending", "completed", "all", "deleted"]
Order = Literal["created", "due", "priority", "completed"]
Priority = Literal["high", "medium", "low", "none"]

UserId = Annotated[_Line | None, BeforeValidator(_absent), Field(description="Whose tasks; empty: your own.")]
Title = Annotated[_Title, Field(description="What to do, on one line.", json_schema_extra={"maxLength": 200})]
NewTitle = Annotated[_Title | None, BeforeValidator(_absent), Field(description="New title.")]
Description = Annotated[_Text | None, BeforeValidator(_absent), Field(description="Details, if any.")]
NewDescription = Annotated[
    _Text | None, BeforeValidator(_absent_or_cleared), Field(description="New details; none removes them.")
]
TaskId = Annotated[_Id, Field(description="The task's id, from list_tasks.")]
StatusFilter = Annotated[
    Status | None, BeforeValidator(_absent), Field(description="deleted: in the last 30 days; undo restores them.")
]
Query = Annotated[
    _Query | None,
    BeforeValidator(_absent),
    Field(description="Words in title, description or labels. If nothing matches, nearest has similar titles."),
]
Cursor = Annotated[
    Annotated[str, AfterValidator(_position)] | None,
    BeforeValidator(_absent),
    Field(description="next_cursor of the page before."),
]
Limit = Annotated[_Limit | None, BeforeValidator(_absent), Field(description="Tasks per page.")]
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
    Field(description="Fri 2026-11-27, with a time Fri 2026-11-27 15:00; also tomorrow, Friday, 15:00."),
]
NewDue = Annotated[
    _Words | None,
    BeforeValidator(_absent),
    Field(description="As in add_task; or +1w, -2d, +1m to move it, next to skip one of a repeat, none to remove it."),
]
DueRange = Annotated[
    _Words | None,
    BeforeValidator(_absent),
    Field(description="overdue, today, none, any (has a date), a day, or days a..b, ..b, a.."),
]
DoneRange = Annotated[_Words | None, BeforeValidator(_absent), Field(description="Completed on a day, or days a..b.")]
NewPriority = Annotated[Priority | None, BeforeValidator(_absent_or_kept), Field(description="How much it matters.")]
PriorityFilter = Annotated[Priority | None, BeforeValidator(_absent_or_any), Field(description="Only this one.")]
Labels = Annotated[_Texts | None, BeforeValidator(_list), Field(description="Such as work.")]
NewLabels = Annotated[_Texts | None, BeforeValidator(_list), Field(description="Replace all labels.")]
MoreLabels = Annotated[_Texts | None, BeforeValidator(_list), Field(description="Labels to add.")]
FewerLabels = Annotated[_Texts | None, BeforeValidator(_list), Field(description="Labels to remove; * for all.")]
Label = Annotated[_Words | None, BeforeValidator(_absent), Field(description="Only with this label.")]
Repeat = Annotated[
    _Words | None,
    BeforeValidator(_absent),
    Field(description="RRULE: FREQ=WEEKLY;BYDAY=MO. FROM=DONE counts from completion."),
]
NewRepeat = Annotated[_Words | None, BeforeValidator(_absent), Field(description="As in add_task; none ends it.")]
NewStatus = Annotated[
    Literal["pending", "completed"] | None,
    BeforeValidator(_absent_or_kept),
    Field(description="pending reopens it."),
]
Undo = Annotated[
    bool | None,
    BeforeValidator(_flag),
    Field(description="true reverts its last change, also a deletion; give only task_id and also with it."),
]
OrderBy = Annotated[Order | None, BeforeValidator(_absent), Field(description="Sorted by.")]
