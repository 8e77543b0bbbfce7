"""The types of the tools' arguments: their published schemas, and which values are converted or rejected."""

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints, WithJsonSchema

from common.task_words import MAX_REMIND
from common.text import is_single_line_text, is_storable, remove_invisible, remove_stacked_marks
from common.tokens import is_user_id

MAX_ID = 2**63 - 1
_MAX_TEXT_TO_CLEAN = 16_000  # characters of a text; longer ones are rejected before they are cleaned, which is slow
_MAX_DESCRIPTION = 4_000  # characters
_MAX_SHORT_TEXT = 300  # characters
_MAX_LABELS = 10  # of one argument
_MAX_QUERY, _MAX_QUERY_WORDS = 200, 20  # characters, words
_MAX_CURSOR = 4_000  # characters; it has a query and a title, which may be emojis
_BREAKS = "\n\r\t\u2028\u2029"

KEEP, NONE, DEFAULT = "keep", "none", "default"
"""Words for "not given", for the removal of a value, and for what the user has set."""


@dataclass(frozen=True)
class Argument:
    """The rule of an argument, for sentences about errors, and its published default."""

    rule: str
    """Completes the sentence "<name> must be …"."""
    not_given: str = ""
    """The published default of one with an `enum`, which means "not given"."""


def list_arguments(types: Mapping[str, Any]) -> dict[str, Argument]:
    """Returns the `Argument` of each parameter that has one, by the parameter's name."""
    return {
        name: value
        for name, annotation in types.items()
        for value in getattr(annotation, "__metadata__", ())
        if isinstance(value, Argument)
    }


def _none_if_empty(value: Any) -> Any:
    """Models also send "null" for "not given"."""
    return None if value in ("", "null") else value


NONE_IF_EMPTY = BeforeValidator(_none_if_empty)


def none_if(word: str) -> BeforeValidator:
    return BeforeValidator(lambda value: None if value == word else _none_if_empty(value))


def empty_if_none(value: Any) -> Any:
    """Returns an empty text for "none", because an empty text means "not given"."""
    return "" if value == NONE else _none_if_empty(value)


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

    Its error says nothing, because clients get the sentence of `Argument`.
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
_ShortText = Annotated[_Stripped, AfterValidator(_check(partial(_is_text, max_length=_MAX_SHORT_TEXT)))]
_Query = Annotated[_Stripped, AfterValidator(_check(_is_query))]
_Texts = Annotated[list[_ShortText], AfterValidator(_check(lambda texts: len(texts) <= _MAX_LABELS))]
_NOT_BOOL = BeforeValidator(_check(lambda value: not isinstance(value, bool)))
_Limit = Annotated[int, Field(ge=1, le=100), _NOT_BOOL]
_Id = Annotated[int, AfterValidator(_check(lambda number: 1 <= number <= MAX_ID)), _NOT_BOOL]
_AS_TEXT = WithJsonSchema({"type": "string"})

# Types of the arguments that set fields of a task, in `tasks/fields.py`. None means "not given" for all of them.
TitleText = Annotated[_Stripped, AfterValidator(_check(partial(is_single_line_text, max_length=200)))]
LongText = Annotated[_Clean, AfterValidator(_check(partial(_is_text, min_length=0, max_length=_MAX_DESCRIPTION)))]
OptionalText = Annotated[_ShortText | None, NONE_IF_EMPTY]
OptionalTexts = Annotated[_Texts | None, BeforeValidator(_parse_list)]
_Minutes = Annotated[int, Field(ge=0, le=MAX_REMIND)]
OptionalMinutes = Annotated[Annotated[_Minutes | Literal["none", "default"], _AS_TEXT] | None, NONE_IF_EMPTY, _NOT_BOOL]
"""Published as text, because of its words and because an empty text means "not given"."""

Status = Literal["pending", "completed", "all", "deleted"]
Order = Literal["created", "due", "priority", "completed"]
Priority = Literal["high", "medium", "low", "none"]

UserId = Annotated[
    _UserId | None,
    NONE_IF_EMPTY,
    Argument("text of 1 to 200 characters without control characters, or empty"),
    Field(description="Whose tasks; empty: your own."),
]
TaskId = Annotated[
    _Id,
    Argument("the whole number of a task from list_tasks"),
    Field(description="The task's id, from list_tasks."),
]
AlsoTitles = Annotated[
    Annotated[list[TitleText], Field(max_length=50)] | None,
    BeforeValidator(_parse_list),
    Argument("a list of at most 50 titles, each of 1 to 200 characters on one line"),
    Field(description="Titles of more with the same details."),
]
AlsoIds = Annotated[
    Annotated[list[_Id], Field(max_length=99)] | None,
    BeforeValidator(_parse_list),
    Argument("a list of at most 99 whole numbers of tasks from list_tasks"),
    Field(description="Ids of more tasks."),
]
Undo = Annotated[
    bool | None,
    BeforeValidator(_parse_flag),
    Argument("true or false"),
    Field(description="true reverts its last change or deletion; only with task_id and also."),
]
StatusFilter = Annotated[
    Status | None,
    NONE_IF_EMPTY,
    Argument("pending, completed, all or deleted"),
    Field(description="deleted: in the last 30 days; undo restores them."),
]
Query = Annotated[
    _Query | None,
    NONE_IF_EMPTY,
    Argument("text to search for, of at most 200 characters and 20 words"),
    Field(description="Words to find. If none match, nearest has similar titles."),
]
DueRange = Annotated[
    OptionalText,
    Argument("overdue, today, none, any, a day, or a range of days such as 2026-11-23..2026-11-29"),
    Field(description="overdue, today, none, any (has a date), a day, or days a..b, ..b, a.."),
]
DoneRange = Annotated[
    OptionalText,
    Argument("a day or a range of days such as 2026-11-16..2026-11-22"),
    Field(description="Completed on a day, or days a..b."),
]
Label = Annotated[OptionalText, Argument("one label"), Field(description="Only with this label.")]
PriorityFilter = Annotated[
    Priority | None,
    none_if("any"),
    Argument("high, medium, low, none or any", not_given="any"),
    Field(description="Only this one."),
]
OrderBy = Annotated[
    Order | None,
    NONE_IF_EMPTY,
    Argument("created, due, priority or completed"),
    Field(description="due: day, then priority, then time."),
]
Cursor = Annotated[
    _Cursor | None,
    NONE_IF_EMPTY,
    Argument("the next_cursor of the page before, or empty"),
    Field(description="next_cursor of the page before."),
]
Limit = Annotated[
    _Limit | None,
    NONE_IF_EMPTY,
    Argument("a whole number from 1 to 100"),
    Field(description="Tasks per page."),
]
