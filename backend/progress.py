"""What a turn shows of its tool steps: a line while one runs and when it is done, a card, the list asked for."""

import json
from collections.abc import Iterable
from typing import Any, TypeVar

from chatkit.types import ProgressUpdateEvent
from pydantic import BaseModel, ValidationError

from backend.widgets import Json, Task, TaskPage, task_card, task_list

Shape = TypeVar("Shape", bound=BaseModel)

_RUNNING = {
    "add_task": "Adding “{title}”…",
    "list_tasks": "Looking at your list…",
    "complete_task": "Completing task {task_id}…",
    "update_task": "Changing task {task_id}…",
    "delete_task": "Deleting task {task_id}…",
}
_DONE = {
    "add_task": "Added “{title}”",
    "list_tasks": "Looked at your list",
    "complete_task": "Completed “{title}”",
    "update_task": "Changed “{title}”",
    "delete_task": "Deleted “{title}”",
}
_CARDS = {"add_task": "Added", "update_task": "Changed"}
_REDRAWING = ("complete_task", "update_task", "delete_task")


def running(tool: str, arguments: str) -> ProgressUpdateEvent | None:
    return _line(_RUNNING.get(tool), arguments)


def done(tool: str, output: str) -> ProgressUpdateEvent | None:
    """None for a call that failed: its output is a sentence for the model."""
    return _line(_DONE.get(tool), output, icon="check") if _parsed(output) is not None else None


def _line(template: str | None, values: str, icon: Any = None) -> ProgressUpdateEvent | None:
    if template is None:
        return None
    return ProgressUpdateEvent(icon=icon, text=template.format_map(_Values(_parsed(values) or {})))


def _parsed(text: str) -> dict[str, Any] | None:
    try:
        parsed = json.loads(text or "{}")
    except ValueError:
        return None
    return parsed if isinstance(parsed, dict) else None


class _Values(dict[str, str]):
    """Values for a line: what is missing is left open, what is too long is cut."""

    def __init__(self, values: dict[str, Any]) -> None:
        super().__init__({key: str(value)[:60] for key, value in values.items()})

    def __missing__(self, key: str) -> str:
        return "…"


def changed_task(tool: str, output: str) -> Task | None:
    """The task as a call left it, when widgets may show what it was before."""
    return _as(Task, output) if tool in _REDRAWING else None


class TaskViews:
    """The widgets of one turn. A list is shown at the turn's end: most are only read to find a task's number."""

    def __init__(self) -> None:
        self._listed: list[Task] = []
        self._more = False

    def begin_step(self, tools: Iterable[str]) -> None:
        if any(tool != "list_tasks" for tool in tools):
            self._listed = []

    def card(self, tool: str, output: str) -> Json | None:
        if tool not in _CARDS or (task := _as(Task, output)) is None:
            return None
        return task_card(task, _CARDS[tool])

    def add_page(self, arguments: str, output: str) -> None:
        """Take in a page of the list; one with a cursor goes on with the page before."""
        if (page := _as(TaskPage, output)) is None:
            return
        before = self._listed if (_parsed(arguments) or {}).get("cursor") else []
        self._listed = [*before, *page.tasks]
        self._more = page.next_cursor is not None

    def final(self) -> Json | None:
        return task_list(self._listed, more=self._more) if self._listed else None


def _as(shape: type[Shape], output: str) -> Shape | None:
    try:
        return shape.model_validate_json(output)
    except ValidationError:
        return None
