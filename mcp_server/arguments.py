"""The types of the tools' arguments: their published schemas, and which values are converted or rejected."""

import json
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints

from common.text import is_single_line_text, is_storable, remove_invisible, remove_stacked_marks
from common.tokens import is_user_id

MAX_ID = 2**63 - 1
_MAX_TEXT_TO_CLEAN = 16_000  # characters of a text; longer ones are rejected before they are cleaned, which is slow
_MAX_DESCRIPTION = 4_000  # characters
_MAX_SHORT_TEXT = 300  # characters
_MAX_LABELS = 10  # of one argument
_MAX_QUERY, _MAX_QUERY_WORDS = 200, 20  # characters, words
_MAX_CURSOR = 2_000  # characters
_BREAKS = "\n\r\t\u2028\u2029"

# They complete the sentence "<name> must be …"; a key `tool.name` is for one tool.
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

# The published default of each optional argument means "not given", for clients that must send every argument (OpenAI's
# strict mode). It is not null, because some clients reject `anyOf` and null in a schema, and never an empty text beside
# an `enum`, which Gemini rejects.
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


def _none_if_empty(value: Any) -> Any:
    """Models also send "null" for "not given"."""
    return None if value in ("", "null") else value


_NONE_IF_EMPTY = BeforeValidator(_none_if_empty)


def _none_if(word: str) -> BeforeValidator:
    return BeforeValidator(lambda value: None if value == word else _none_if_empty(value))


def _empty_if_none(value: Any) -> Any:
    """Returns an empty text for "none", because an empty text means "not given"."""
    return "" if value == "none" else _none_if_empty(value)


def _clean_text(value: Any) -> Any:
    if isinstance(value, str) and len(value) > _MAX_TEXT_TO_CLEAN:
        raise ValueError("too long")
    if not isinstance(value, str) or not is_storable(value, allowed=_BREAKS):
        return value
    return remove_stacked_marks(remove_invisible(value))


def _parse_list(value: Any) -> Any:
    """Models also send a list as JSON in a text."""
    if isinstance(value, str) and value.strip().startswith("[") and len(value) <= _MAX_TEXT_TO_CLEAN:
        with suppress(ValueError, RecursionError):
            value = json.loads(value)
    return None if value in ("", "null", []) else value


def _parse_flag(value: Any) -> Any:
    """Accepts true and false, also as text; pydantic would accept "on" and 1, too."""
    if value in ("false", "", "null") or value is False:
        return None
    if value not in (None, "true") and value is not True:
        raise ValueError("neither true nor false")
    return None if value is None else True


def _check(is_valid: Callable[[Any], bool]) -> Callable[[Any], Any]:
    """Returns a validator that publishes no limit, because each costs tokens in every request.

    Its error says nothing, because clients get the sentence of `RULES`.
    """

    def check(value: Any) -> Any:
        if not is_valid(value):
            raise ValueError
        return value

    return check


def _is_text(text: str, *, min_length: int = 1, max_length: int) -> bool:
    return min_length <= len(text) <= max_length and is_storable(text, allowed=_BREAKS)


def _is_query(text: str) -> bool:
    return _is_text(text, max_length=_MAX_QUERY) and len(text.split()) <= _MAX_QUERY_WORDS


_UserId = Annotated[str, AfterValidator(_check(is_user_id))]
_Cursor = Annotated[str, AfterValidator(_check(lambda text: len(text) <= _MAX_CURSOR and is_storable(text)))]
_Clean = Annotated[str, BeforeValidator(_clean_text)]
_Stripped = Annotated[_Clean, StringConstraints(strip_whitespace=True)]
_Title = Annotated[_Stripped, AfterValidator(_check(partial(is_single_line_text, max_length=200)))]
_Text = Annotated[_Clean, AfterValidator(_check(partial(_is_text, min_length=0, max_length=_MAX_DESCRIPTION)))]
_ShortText = Annotated[_Stripped, AfterValidator(_check(partial(_is_text, max_length=_MAX_SHORT_TEXT)))]
_Query = Annotated[_Stripped, AfterValidator(_check(_is_query))]
_Texts = Annotated[list[_ShortText], AfterValidator(_check(lambda texts: len(texts) <= _MAX_LABELS))]
_NOT_BOOL = BeforeValidator(_check(lambda value: not isinstance(value, bool)))
_Limit = Annotated[int, Field(ge=1, le=100), _NOT_BOOL]
_Id = Annotated[int, AfterValidator(_check(lambda number: 1 <= number <= MAX_ID)), _NOT_BOOL]
Status = Literal["pending", "completed", "all", "deleted"]
Order = Literal["created", "due", "priority", "completed"]
Priority = Literal["high", "medium", "low", "none"]

_OptionalText = Annotated[_ShortText | None, _NONE_IF_EMPTY]
_OptionalTexts = Annotated[_Texts | None, BeforeValidator(_parse_list)]

UserId = Annotated[_UserId | None, _NONE_IF_EMPTY, Field(description="Whose tasks; empty: your own.")]
Title = Annotated[_Title, Field(description="What to do, on one line.", json_schema_extra={"maxLength": 200})]
NewTitle = Annotated[_Title | None, _NONE_IF_EMPTY, Field(description="New title.")]
Description = Annotated[_Text | None, _NONE_IF_EMPTY, Field(description="Details, if any.")]
NewDescription = Annotated[
    _Text | None, BeforeValidator(_empty_if_none), Field(description="New details; none removes them.")
]
TaskId = Annotated[_Id, Field(description="The task's id, from list_tasks.")]
StatusFilter = Annotated[
    Status | None, _NONE_IF_EMPTY, Field(description="deleted: in the last 30 days; undo restores them.")
]
Query = Annotated[
    _Query | None,
    _NONE_IF_EMPTY,
    Field(description="Words in title, description or labels. If nothing matches, nearest has similar titles."),
]
Cursor = Annotated[_Cursor | None, _NONE_IF_EMPTY, Field(description="next_cursor of the page before.")]
Limit = Annotated[_Limit | None, _NONE_IF_EMPTY, Field(description="Tasks per page.")]
AlsoTitles = Annotated[
    Annotated[list[_Title], Field(max_length=50)] | None,
    BeforeValidator(_parse_list),
    Field(description="Titles of more tasks with the same details."),
]
AlsoIds = Annotated[
    Annotated[list[_Id], Field(max_length=99)] | None,
    BeforeValidator(_parse_list),
    Field(description="Ids of more tasks."),
]
Due = Annotated[
    _OptionalText, Field(description="Fri 2026-11-27, with a time Fri 2026-11-27 15:00; also tomorrow, Friday, 15:00.")
]
NewDue = Annotated[
    _OptionalText,
    Field(description="As in add_task; or +1w, -2d, +1m to move it, next to skip one of a repeat, none to remove it."),
]
DueRange = Annotated[
    _OptionalText, Field(description="overdue, today, none, any (has a date), a day, or days a..b, ..b, a..")
]
DoneRange = Annotated[_OptionalText, Field(description="Completed on a day, or days a..b.")]
NewPriority = Annotated[Priority | None, _none_if(KEEP), Field(description="How much it matters.")]
PriorityFilter = Annotated[Priority | None, _none_if("any"), Field(description="Only this one.")]
Labels = Annotated[_OptionalTexts, Field(description="Such as work.")]
NewLabels = Annotated[_OptionalTexts, Field(description="Replace all labels.")]
MoreLabels = Annotated[_OptionalTexts, Field(description="Labels to add.")]
FewerLabels = Annotated[_OptionalTexts, Field(description="Labels to remove; * for all.")]
Label = Annotated[_OptionalText, Field(description="Only with this label.")]
Repeat = Annotated[_OptionalText, Field(description="RRULE: FREQ=WEEKLY;BYDAY=MO. FROM=DONE counts from completion.")]
NewRepeat = Annotated[_OptionalText, Field(description="As in add_task; none ends it.")]
NewStatus = Annotated[Literal["pending", "completed"] | None, _none_if(KEEP), Field(description="pending reopens it.")]
Undo = Annotated[
    bool | None,
    BeforeValidator(_parse_flag),
    Field(description="true reverts its last change, also a deletion; give only task_id and also with it."),
]
OrderBy = Annotated[Order | None, _NONE_IF_EMPTY, Field(description="Sorted by.")]
