"""The requests and responses of the page's task list."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, Discriminator, Field, JsonValue, NaiveDatetime, StrictStr, Tag, create_model

import english
from backend.api.request_body import RequestBody
from backend.cards.task import TaskFields

View = Literal["today", "upcoming", "all", "done", "deleted"]
MAX_TEXT_LENGTH = 500
MAX_DATE_LENGTH = 100
# The days that a task can be due: further ones have none after them.
Written = Annotated[NaiveDatetime, Field(ge=datetime(1970, 1, 1), lt=datetime(3000, 1, 1))]


class TaskQuery(BaseModel):
    """Which page of which view; `offset` skips tasks, from the cursor on if there is one."""

    view: View
    sort: Literal["date", "priority", "title", "added"] = "date"
    query: str | None = None
    label: str | None = None
    priority: Literal["high", "medium", "low", "none"] | None = None
    cursor: str | None = None
    offset: Annotated[int, Field(ge=0, le=10_000)] = 0
    limit: Annotated[int, Field(ge=1, le=100)] = 100


class Task(TaskFields):
    """A task; `due` and `time` are by the user's clock, the other times are instants."""

    status: Literal["pending", "completed", "deleted"]
    due: str | None = None
    time: str | None = None
    completed: datetime | None = None
    deleted: datetime | None = None

    @classmethod
    def from_tool(cls, task: Mapping[str, Any], *, is_deleted: bool = False) -> Self:
        """Converts a task of a tool's result."""
        due = task["due"] or {"date": None, "time": None}
        status = "deleted" if is_deleted or task.get("deleted") else task["status"]
        moments = {"completed": task["completed_at"], "deleted": task.get("deleted_at")}
        return cls.model_validate({**task, **moments, "status": status, "due": due["date"], "time": due["time"]})


class ListedTask(Task):
    """A task of a list, or at its own address: with what only its notifications change."""

    snoozed_until: datetime | None = None
    """When its notification comes again."""


class TaskPreview(BaseModel):
    """What a text says of a new task; spans of the kind `unread` look like a date that was not understood."""

    title: str
    due: str | None = None
    time: str | None = None
    repeat: str | None = None
    priority: str | None = None
    labels: Sequence[str] = ()
    remind: int | Literal["none"] | None = None
    spans: Sequence[english.Span] = ()

    @classmethod
    def from_reading(cls, reading: english.ParsedTask) -> Self:
        when = reading.when
        return cls(
            title=reading.title,
            due=when and when.day.isoformat(),
            time=f"{when.time:%H:%M}" if when and when.time else None,
            repeat=when and when.repeat,
            priority=reading.priority,
            labels=reading.labels,
            remind=reading.remind,
            spans=reading.spans,
        )


class Day(BaseModel):
    day: str
    done: int


class Section(BaseModel):
    """A section of a view, in the order of the list.

    `key` is a day, or `overdue`, `today`, `coming` or `undated`; or `all`, if the view is not sorted by date. What is
    beyond 500 days is one section, `later` or `earlier`.
    """

    key: str
    count: int


class TaskPage(BaseModel):
    """A page of a view; `last` is the number of a change that it contains, as it does all before."""

    view: View
    now: str
    time_zone: str
    total: int
    sections: list[Section]
    tasks: list[ListedTask]
    next_cursor: str | None
    last: int
    days: list[Day] | None = None
    """Of the view `done`, on its first page: how many are completed since each of the last days."""


class LabelCount(BaseModel):
    label: str
    count: int


class TaskCounts(BaseModel):
    """How many tasks each view has, how many of `today` are overdue, and the 200 commonest labels of pending tasks."""

    today: int
    overdue: int
    upcoming: int
    all: int
    done: int
    deleted: int
    labels: list[LabelCount]


class Batch(BaseModel):
    """What was changed at once: by an answer, by hand, or as another batch was undone (`undo`) or redone (`redo`).

    `undoes` is that other batch, and `undone` whether this one was undone. `titles` are the first three of its `count`
    tasks.
    """

    batch: str
    kind: Literal["change", "undo", "redo"]
    actor: str
    undoes: str | None
    undone: bool
    titles: list[str]
    count: int
    made: datetime


class Batches(BaseModel):
    batches: list[Batch]


class TaskChanges(BaseModel):
    """The tasks that were changed since, unless there are too many: then the view has to be read again."""

    last: int
    task_ids: list[int]
    more: bool


class ChangedTasks(BaseModel):
    """What became of the tasks of a change, which `batch` undoes."""

    tasks: list[Task]
    not_found: list[int]
    batch: str
    not_understood: list[str] = []
    """Of a task that was added by a text: what looks like a date and was left in the title."""

    @classmethod
    def from_tool(cls, result: Mapping[str, Any], *, batch: str) -> Self:
        """Converts a tool's result: the tasks that it changed, a deleted one nested, then those that follow repeats."""
        results = [result, *result["also"]]
        changed = [Task.from_tool(one.get("task", one), is_deleted="task" in one) for one in results]
        following = [Task.from_tool(one["next"]["task"]) for one in results if one.get("next")]
        return cls(tasks=changed + following, not_found=result["not_found"], batch=batch)


class MovedTasks(ChangedTasks):
    """The first hundred of the tasks that were moved, and how many these are."""

    count: int = 0


OPTIONAL_FIELDS = ("due", *(name for name in TaskFields.model_fields if name not in ("id", "title")))
_OPTIONAL: dict[str, Any] = dict.fromkeys(OPTIONAL_FIELDS, (JsonValue, None))  # the tools say what the values may be
_TaskFields = create_model("_TaskFields", __base__=RequestBody, **_OPTIONAL)


class NewTask(_TaskFields):
    title: JsonValue


class TaskText(RequestBody):
    """A new task as it is written: "call mum friday at 3pm #family"."""

    text: Annotated[StrictStr, Field(min_length=1, max_length=MAX_TEXT_LENGTH)]
    default_due: JsonValue = None
    """The day of a task whose text names none."""
    dates: bool = True
    """Whether words of time are a date; otherwise they stay in the title."""
    written: Written | None = None
    """The user's clock when it was written, which may be long before it is sent."""


def _get_body_kind(body: Any) -> str:
    is_text = isinstance(body, TaskText) or (isinstance(body, dict) and "text" in body)
    return TaskText.__name__ if is_text else NewTask.__name__


NewTaskBody = Annotated[
    Annotated[NewTask, Tag(NewTask.__name__)] | Annotated[TaskText, Tag(TaskText.__name__)],
    Discriminator(_get_body_kind),
]


class TaskUpdate(_TaskFields):
    title: JsonValue = None
    add_labels: JsonValue = None
    remove_labels: JsonValue = None
    status: JsonValue = None
    undo: Literal[True] | None = None
    also: JsonValue = None


class Undo(RequestBody):
    batch: Annotated[StrictStr, Field(pattern=r"^[\x20-\x7e]{1,200}$")]
