"""The tasks that tool calls have returned, and the same tasks as they are now."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from pydantic import BaseModel, ValidationError

from backend.cards.task import ChangedTask, Task, TaskPage
from backend.conversations.records import Entry, Record, ToolCall
from backend.errors import LimitReached
from backend.tools.connection import ToolsUnavailable
from backend.tools.table import find_tool
from backend.tools.task_tools import TaskTools

_MAX_TASKS = 1_000
_MAX_TASKS_AT_ONCE = 200  # of one request; the limit of the task service
_LOAD_SECONDS = 4.0  # then a conversation opens without the tasks


class LastChange(BaseModel):
    task_id: int
    batch: str
    is_undone: bool = False


class _TaskResponse(BaseModel):
    tasks: list[Task]
    last_changes: list[LastChange] = []


@dataclass(frozen=True, slots=True)
class CurrentTasks:
    """Tasks as they are; `known` has also the ids of permanently deleted ones. `now` is the user's wall clock.

    Of a task that is not known a card shows what its call has returned.
    """

    now: datetime | None = None
    tasks: Mapping[int, Task] = field(default_factory=dict[int, Task])
    last_changes: Mapping[int, LastChange] = field(default_factory=dict[int, LastChange])
    known: frozenset[int] = frozenset()

    def state_of(self, task: Task) -> Task:
        current = self.tasks.get(task.id)
        if current is not None:
            next_task = task.next if current.status == "completed" else None
            return current.model_copy(update={"next": next_task})
        return Task(id=task.id, title=task.title) if task.id in self.known else task

    def with_call(self, call: ToolCall) -> "CurrentTasks":
        tasks = {task.id: task for task in tasks_of(call)}
        changed = {task.id: LastChange(task_id=task.id, batch=call.run_id) for task in get_changed_tasks(call)}
        return CurrentTasks(
            self.now, {**self.tasks, **tasks}, {**self.last_changes, **changed}, self.known | frozenset(tasks)
        )

    def with_changes(self, changes: Entry) -> "CurrentTasks":
        """Takes it that the run has changed last what else is not known: only the tasks of the newest cards are."""
        made = {id: LastChange(task_id=id, batch=changes.run_id) for id in ids_of(changes)}
        return replace(self, last_changes={**made, **self.last_changes})

    def find_differences(self, other: "CurrentTasks") -> set[int]:
        """Returns the ids of the tasks that cards show otherwise with `other`."""
        ids = {*self.known, *self.last_changes, *other.known, *other.last_changes}
        return {id for id in ids if self._facts_of(id) != other._facts_of(id)}

    def _facts_of(self, task_id: int) -> tuple[Task | None, LastChange | None, bool]:
        return self.tasks.get(task_id), self.last_changes.get(task_id), task_id in self.known

    def can_undo(self, task_id: int, batch: str) -> bool:
        """Whether the batch changed the task last and is not undone, so that nothing else is undone with it."""
        last = self.last_changes.get(task_id)
        return last is not None and last.batch == batch and not last.is_undone

    def is_undone(self, task_id: int, batch: str) -> bool:
        last = self.last_changes.get(task_id)
        return last is not None and last.batch == batch and last.is_undone


def page_of(call: ToolCall) -> TaskPage | None:
    if call.state != "done" or not find_tool(call.tool).reads:
        return None
    try:
        return TaskPage.model_validate(call.details)
    except ValidationError:
        return None


def get_changed_tasks(call: ToolCall) -> Sequence[Task]:
    words = find_tool(call.tool).words
    if call.state != "done" or words is None or not words.label:
        return ()
    try:
        return ChangedTask.model_validate(call.details).tasks
    except ValidationError:
        return ()


def tasks_of(call: ToolCall) -> Sequence[Task]:
    page = page_of(call)
    return get_changed_tasks(call) if page is None else page.tasks


def ids_of(record: Record) -> list[int]:
    """Returns the tasks that a tool call has returned, or that the changes of a run name."""
    if isinstance(record, ToolCall):
        return [task.id for task in tasks_of(record)]
    changes = (record.details or {}).get("changes", []) if record.kind == "changes" else []
    return [change["task_id"] for change in changes]


async def load_current_tasks(
    tools: TaskTools, user_id: str, task_ids: Iterable[int], *, now: datetime | None = None
) -> CurrentTasks:
    """Loads tasks as they are, by their ids; without a response in time nothing is known of them."""
    ids = sorted(set(task_ids))[-_MAX_TASKS:]
    tasks: list[Task] = []
    last_changes: list[LastChange] = []
    try:
        async with asyncio.timeout(_LOAD_SECONDS):
            for first in range(0, len(ids), _MAX_TASKS_AT_ONCE):
                part = ids[first : first + _MAX_TASKS_AT_ONCE]
                content = await tools.get_json("tasks", user_id=user_id, ids=",".join(map(str, part)))
                read = _TaskResponse.model_validate(content)
                tasks += read.tasks
                last_changes += read.last_changes
    except (TimeoutError, ToolsUnavailable, LimitReached, ValidationError):
        return CurrentTasks(now)
    return CurrentTasks(
        now,
        {task.id: task for task in tasks},
        {change.task_id: change for change in last_changes},
        frozenset(ids),
    )


async def load_titles(task_ids: Iterable[int], tools: TaskTools, *, user_id: str) -> dict[int, str] | None:
    """Loads the titles of up to 1,000 tasks that are on the list; None without a response in time."""
    current = await load_current_tasks(tools, user_id, task_ids)
    on_list = {number: task.title for number, task in current.tasks.items() if task.status != "deleted"}
    return on_list if current.known else None
