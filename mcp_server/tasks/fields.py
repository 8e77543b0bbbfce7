"""The fields of a task.

Each line of `Task` is a field: its type, its column, and the arguments of `add_task` and `update_task` that set it.
Statements, checks, results and their schema, import and export are made of these lines. Only the signatures in
`tools.py`, the model `TaskRow` and a migration repeat them, and `tests/mcp/test_fields.py` compares these.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, time
from typing import Annotated, Any, Literal, LiteralString, cast

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from common.clock import to_utc
from common.task_words import MAX_REMIND, REMIND_NEVER
from mcp_server.arguments import (
    DEFAULT,
    KEEP,
    NONE,
    NONE_IF_EMPTY,
    Argument,
    LongText,
    OptionalMinutes,
    OptionalText,
    OptionalTexts,
    Priority,
    TitleText,
    empty_if_none,
    none_if,
)
from mcp_server.tasks.dates import Due

ONE_OPEN = "tasks_one_open_of_series"  # the index that allows one open task in a series
PRIORITIES = {"high": 1, "medium": 2, "low": 3}
DUE_COLUMNS = {"due_on", "due_time"}

_TITLE = Argument("1 to 200 characters on one line, not counting spaces around it")
AddTitle = Annotated[
    TitleText, _TITLE, Field(description="What to do, on one line.", json_schema_extra={"maxLength": 200})
]
UpdateTitle = Annotated[TitleText | None, NONE_IF_EMPTY, _TITLE, Field(description="New title.")]

_DESCRIPTION = Argument("text of at most 4,000 characters without control characters other than line breaks and tabs")
AddDescription = Annotated[LongText | None, NONE_IF_EMPTY, _DESCRIPTION, Field(description="Details, if any.")]
UpdateDescription = Annotated[
    LongText | None, BeforeValidator(empty_if_none), _DESCRIPTION, Field(description="New details; none removes them.")
]

UpdateStatus = Annotated[
    Literal["pending", "completed"] | None,
    none_if(KEEP),
    Argument("pending or completed", not_given=KEEP),
    Field(description="pending reopens it."),
]

_DUE = Argument("text such as Fri 2026-11-27 15:00, tomorrow, +1w or none")
AddDue = Annotated[
    OptionalText,
    _DUE,
    Field(description="Fri 2026-11-27 or Fri 2026-11-27 15:00; tomorrow, Friday, 15:00."),
]
UpdateDue = Annotated[
    OptionalText,
    _DUE,
    Field(description="As in add_task; +1w, -2d, +1m move it, next skips one of a repeat, none removes it."),
]

_PRIORITY = "high, medium, low or none"
AddPriority = Annotated[
    Priority | None, none_if(KEEP), Argument(_PRIORITY, not_given=NONE), Field(description="How much it matters.")
]
UpdatePriority = Annotated[
    Priority | None, none_if(KEEP), Argument(_PRIORITY, not_given=KEEP), Field(description="How much it matters.")
]

_LABELS = Argument("a list of at most 10 texts")
AddLabels = Annotated[OptionalTexts, _LABELS, Field(description="Such as work.")]
UpdateLabels = Annotated[OptionalTexts, _LABELS, Field(description="Replace all labels.")]
MoreLabels = Annotated[OptionalTexts, _LABELS, Field(description="Labels to add.")]
FewerLabels = Annotated[OptionalTexts, _LABELS, Field(description="Labels to remove; * for all.")]

_REPEAT = Argument("an RRULE such as FREQ=WEEKLY;BYDAY=MO, or none")
AddRepeat = Annotated[
    OptionalText, _REPEAT, Field(description="RRULE: FREQ=WEEKLY;BYDAY=MO. FROM=DONE counts from completion.")
]
UpdateRepeat = Annotated[OptionalText, _REPEAT, Field(description="As in add_task; none ends it.")]

_REMIND = Argument(f"whole minutes from 0 to {MAX_REMIND:,}, or none or default")
AddRemind = Annotated[OptionalMinutes, _REMIND, Field(description="Minutes before due, if asked; none: never.")]
UpdateRemind = Annotated[OptionalMinutes, _REMIND, Field(description="Also default.")]


@dataclass(frozen=True)
class Column:
    """The column of a field."""

    type: LiteralString
    check: LiteralString | None = None
    check_name: str | None = None
    """By default the name of the column."""
    words: Mapping[str, int] = field(default_factory=dict[str, int])
    """The words that stand for some of its numbers outside of the database."""
    has_only_words: bool = False


@dataclass(frozen=True)
class Arguments:
    """The types of the arguments of `add_task` and `update_task` that set a field."""

    add: Any = None
    update: Any = None


_Moment = Annotated[datetime, AfterValidator(to_utc)]


class Task(BaseModel):
    """A row of the table `tasks` or of its log, whose older rows lack the newer fields."""

    model_config = ConfigDict(frozen=True)

    id: Annotated[int, Column("bigint")]
    title: Annotated[
        str,
        Column("text", "char_length(title) BETWEEN 1 AND 200", "title_length"),
        Arguments(add=AddTitle, update=UpdateTitle),
    ]
    description: Annotated[
        str,
        Column("text", "char_length(description) <= 4000", "description_length"),
        Arguments(add=AddDescription, update=UpdateDescription),
    ]
    status: Annotated[
        Literal["pending", "completed"],
        Column("text", "status IN ('pending', 'completed')"),
        Arguments(update=UpdateStatus),
    ]
    created_at: Annotated[_Moment, Column("timestamptz")]
    updated_at: Annotated[_Moment, Column("timestamptz")]
    completed_at: Annotated[_Moment | None, Column("timestamptz")]
    due_on: Annotated[date | None, Column("date")] = None
    due_time: Annotated[time | None, Column("time(0)", "due_time IS NULL OR due_on IS NOT NULL")] = None
    priority: Annotated[
        int | None,
        Column("smallint", "priority BETWEEN 1 AND 3", words=PRIORITIES, has_only_words=True),
        Arguments(add=AddPriority, update=UpdatePriority),
        Field(ge=1, le=len(PRIORITIES)),
    ] = None
    labels: Annotated[
        tuple[str, ...], Column("text[]", "cardinality(labels) <= 10"), Arguments(add=AddLabels, update=UpdateLabels)
    ] = ()
    repeat: Annotated[
        str | None,
        Column(
            "text",
            "repeat IS NULL OR (due_on IS NOT NULL AND series IS NOT NULL AND char_length(repeat) <= 200)",
        ),
        Arguments(add=AddRepeat, update=UpdateRepeat),
    ] = None
    series: Annotated[int | None, Column("bigint"), Field(description="The id of the first task of a repeat.")] = None
    remind: Annotated[
        int | None,
        Column("integer", "remind BETWEEN -1 AND 40320", words={NONE: REMIND_NEVER}),
        Field(
            ge=REMIND_NEVER,
            le=MAX_REMIND,
            description="Minutes before the due time; none: never, null: as the user has set.",
        ),
        Arguments(add=AddRemind, update=UpdateRemind),
    ] = None

    @classmethod
    def new(cls, title: str, moment: datetime) -> "Task":
        moments = {"created_at": moment, "updated_at": moment, "completed_at": None}
        return cls(id=0, title=title, description="", status="pending", **moments)

    @property
    def due(self) -> Due | None:
        return Due(self.due_on, self.due_time) if self.due_on else None

    def as_json(self) -> dict[str, Any]:
        return self.model_dump(mode="json")

    def render(self, user_id: str) -> dict[str, Any]:
        values = self.model_dump(mode="json", exclude=DUE_COLUMNS)
        words = {name: render_value(name, values[name]) for name, column in COLUMNS.items() if column.words}
        return {"user_id": user_id, **values, **words, "due": self.due}


COLUMNS = {
    name: next(value for value in field.metadata if isinstance(value, Column))
    for name, field in Task.model_fields.items()
}
ARGUMENTS = {
    name: value for name, field in Task.model_fields.items() for value in field.metadata if isinstance(value, Arguments)
} | {
    "due": Arguments(add=AddDue, update=UpdateDue),
    "add_labels": Arguments(update=MoreLabels),
    "remove_labels": Arguments(update=FewerLabels),
}


def _read_logged(name: LiteralString, type: LiteralString) -> LiteralString:
    match type:
        case "text":
            return f"before->>'{name}' AS {name}"
        case "text[]":
            return f"ARRAY(SELECT jsonb_array_elements_text(coalesce(before->'{name}', '[]'))) AS {name}"
        case _:
            return f"(before->>'{name}')::{type} AS {name}"


_names = cast("list[LiteralString]", [*COLUMNS])
TASK_COLUMNS = ", ".join(_names)
BRIEF_COLUMNS = ", ".join("left(description, 200) AS description" if name == "description" else name for name in _names)
"""As many characters of the description as cards show."""
TYPED_COLUMNS = ", ".join(f"{name} {COLUMNS[name].type}" for name in _names)
"""For a set of JSON objects."""
LOGGED_COLUMNS = ", ".join(_read_logged(name, COLUMNS[name].type) for name in _names if name != "id")
"""The columns but the id, from the JSON object `before` of a row of the log."""
REPLACED_COLUMNS = ", ".join(f"{name} = excluded.{name}" for name in _names if name != "id")


def render_value(name: str, value: Any) -> Any:
    """Renders the stored value of a field."""
    return next((word for word, number in COLUMNS[name].words.items() if number == value), value)


def parse_value(name: str, argument: Any) -> Any:
    """Returns the value to store for an argument, which "none" or "default" removes."""
    words = COLUMNS[name].words
    if words and argument in words:
        return words[argument]
    return None if argument in (NONE, DEFAULT) and Task.model_fields[name].default is None else argument


class TaskPatch(dict[str, Any]):
    """The given arguments of a call that set fields, by their names."""

    def __init__(self, **arguments: Any) -> None:
        super().__init__({name: value for name, value in arguments.items() if value is not None})
