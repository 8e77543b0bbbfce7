"""What a person can do to a task in a widget: a row for each type of action."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from backend.conversation.errors import BackendError, InvalidRequest
from backend.conversation.items import Widget
from backend.tools import widgets
from backend.tools.task import Task


class NotCompleted(BackendError):
    """The task could not be completed; it may be gone. Ask for the list to see what is there."""


class NotReopened(BackendError):
    """The task could not be opened again: it is gone, or it repeats and the next one is open. Ask to undo it."""


class _OfTask(BaseModel):
    model_config = ConfigDict(strict=True)

    task_id: int


@dataclass(frozen=True)
class Action:
    """The call of a tool that does it, what the model reads of it later, and what is said when it is refused."""

    payload: type[_OfTask]
    tool: str
    arguments: Mapping[str, Any]
    told: str
    refused: type[BackendError]

    def note(self, task: Task) -> str:
        """For the model: what the person did to the task."""
        return self.told.format(id=task.id, title=json.dumps(task.title, ensure_ascii=False))


_TICKED = "The person ticked task {id}, {title}: it is completed."
_UNTICKED = "The person unticked task {id}, {title}: it is open again."

ACTIONS: Mapping[str, Action] = {
    widgets.COMPLETE: Action(_OfTask, "complete_task", {}, _TICKED, NotCompleted),
    widgets.REOPEN: Action(_OfTask, "update_task", {"status": "pending"}, _UNTICKED, NotReopened),
}


def asked_for(kind: str, payload: Any, sender: Widget) -> tuple[Action, dict[str, Any]]:
    """The action and the arguments of its call; raises `InvalidRequest` for what this widget does not offer."""
    if (action := ACTIONS.get(kind)) is None:
        raise InvalidRequest(f"There is no action {kind!r}.")
    try:
        given = action.payload.model_validate(payload)
    except ValidationError:
        raise InvalidRequest(f"The action {kind} needs a task_id: ask for the list again.") from None
    if not widgets.shows(sender, given.task_id):
        raise InvalidRequest("This task is not in this widget: ask for the list again.")
    return action, {**given.model_dump(), **action.arguments}
