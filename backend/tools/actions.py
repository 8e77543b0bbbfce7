"""What a person can do to a task in a widget: a row for each type of action."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, StrictInt, StrictStr, ValidationError

from backend.cards.task import Due, Task
from backend.conversation.items import Json, Widget
from backend.errors import BackendError, InvalidRequest
from backend.tools import edit_form, task_rows, widgets
from backend.tools.edit_form import WallTime

_NAMED = 10  # tasks of a note


class NotCompleted(BackendError):
    """The task could not be completed. It may have been deleted. Ask for the list again."""

    code, status = "not_completed", 409


class NotReopened(BackendError):
    """The task could not be reopened: it was deleted, or its next repeat is already open. Ask to undo it."""

    code, status = "not_reopened", 409


@dataclass(frozen=True)
class Asked:
    """What a click comes to: a call of a tool, if `tool` names one, and the form that the task has from then on.

    `told` is what the model reads of it later. A refused call is told the person in the sentence of `refused`, else in
    the tool's own. `undo_batch` is what it takes back; `can_be_undone` puts a button for that beside the task.
    """

    task_id: int
    tool: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict[str, Any])
    told: str = ""
    refused: type[BackendError] | None = None
    undo_batch: str | None = None
    can_be_undone: bool = False
    form: Json | Literal["as it is"] | None = "as it is"

    def note(self, tasks: Sequence[Task]) -> str:
        """For the model: what the person did to the tasks."""
        named = "; ".join(f"{task.id}, {_quoted(task.title)}" for task in tasks[:_NAMED])
        more = f"; and {len(tasks) - _NAMED} more" if len(tasks) > _NAMED else ""
        return self.told.format(task=named + more, changes=_quoted(self.arguments))

    def redrawn(self, shown: Widget, tasks: Sequence[Task], *, now: datetime, act: str, sender: str) -> Widget | None:
        """A widget of the conversation after this act in the widget `sender`; None for what shows none of the tasks."""
        undo = task_rows.undo_button(act, tasks) if self.can_be_undone and shown.id == sender else None
        drawn = widgets.redrawn(shown, tasks, now=now, undone=self.undo_batch, undo=undo)
        if shown.id != sender:
            return drawn
        drawn = drawn or shown
        return drawn if self.form == "as it is" else widgets.with_form(drawn, self.task_id, self.form)


class _OfTask(BaseModel):
    task_id: StrictInt


class _OfForm(_OfTask, extra="allow"):
    """With the fields that were submitted."""


class _OfBatch(BaseModel):
    batch: StrictStr


class _AsShown(_OfTask):
    """The task as it is shown where its form is to be opened."""

    title: StrictStr = Field(max_length=200)
    due: Due | None = None
    priority: Literal["high", "medium", "low"] | None = None
    labels: tuple[Annotated[StrictStr, Field(max_length=40)], ...] = Field(default=(), max_length=10)


def _call(tool: str, told: str, refused: type[BackendError], **arguments: Any) -> "Ask":
    def ask(given: Any, sender: Widget, here: WallTime) -> Asked:
        return Asked(given.task_id, tool, {"task_id": given.task_id, **arguments}, told, refused)

    return ask


def _undo(given: _OfBatch, sender: Widget, here: WallTime) -> Asked:
    if not widgets.takes_back(sender, given.batch):
        raise InvalidRequest("This cannot be undone any more. It was undone already, or the task has changed since.")
    one = widgets.task_ids(sender)[0]
    return Asked(one, "update_task", {"task_id": one}, _TAKEN_BACK, undo_batch=given.batch)


def _edit(given: _AsShown, sender: Widget, here: WallTime) -> Asked:
    task = Task.model_validate({"id": given.task_id, **given.model_dump(exclude={"task_id"})})
    return Asked(given.task_id, form=edit_form.form(task))


def _open(given: _OfTask, sender: Widget, here: WallTime) -> Asked:
    """Nothing: it is the client that opens the task, and one that does not sends it here."""
    return Asked(given.task_id)


def _close(given: _OfTask, sender: Widget, here: WallTime) -> Asked:
    return Asked(given.task_id, form=None)


def _save(given: _OfForm, sender: Widget, here: WallTime) -> Asked:
    changes = edit_form.changed(_open_form(sender, given.task_id), given.model_extra or {}, here)
    if not changes:
        return _close(given, sender, here)
    return Asked(given.task_id, "update_task", {"task_id": given.task_id, **changes}, _EDITED, form=None)


def _delete(given: _OfTask, sender: Widget, here: WallTime) -> Asked:
    _open_form(sender, given.task_id)
    arguments = {"task_id": given.task_id}
    return Asked(given.task_id, "delete_task", arguments, _DELETED, can_be_undone=True, form=None)


def _open_form(sender: Widget, task_id: int) -> Json:
    if (form := widgets.form_of(sender, task_id)) is None:
        raise InvalidRequest("This form is closed. Open the task again to change it.")
    return form


Ask = Callable[[Any, Widget, WallTime], Asked]
_TICKED = "The person ticked task {task}: it is completed."
_UNTICKED = "The person unticked task {task}: it is open again."
_EDITED = "The person changed task {task} by hand: {changes}"
_DELETED = "The person deleted task {task}."
_TAKEN_BACK = "The person took back what was done to these tasks, which are as they were before: {task}."

ACTIONS: Mapping[str, tuple[type[BaseModel], Ask]] = {
    task_rows.COMPLETE: (_OfTask, _call("complete_task", _TICKED, NotCompleted)),
    task_rows.REOPEN: (_OfTask, _call("update_task", _UNTICKED, NotReopened, status="pending")),
    task_rows.OPEN: (_OfTask, _open),
    task_rows.UNDO: (_OfBatch, _undo),
    edit_form.EDIT: (_AsShown, _edit),
    edit_form.SAVE: (_OfForm, _save),
    edit_form.CLOSE: (_OfTask, _close),
    edit_form.DELETE: (_OfTask, _delete),
}


def asked_for(kind: str, payload: Any, sender: Widget, here: WallTime) -> Asked:
    """What a click in this widget asks for; raises `InvalidRequest` for what the widget does not offer."""
    if kind not in ACTIONS:
        raise InvalidRequest(f"There is no action {kind!r}.")
    shape, ask = ACTIONS[kind]
    try:
        given = shape.model_validate(payload)
    except ValidationError:
        raise InvalidRequest(f"The action {kind} does not belong to this list. Ask for the list again.") from None
    if isinstance(given, _OfTask) and given.task_id not in widgets.task_ids(sender):
        raise InvalidRequest("This task is not in this list. Ask for the list again.")
    return ask(given, sender, here)


def _quoted(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
