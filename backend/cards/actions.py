"""What a click in a card asks for: a change of a task, or that the changes of an answer are undone."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel, StrictInt, StrictStr, ValidationError

from backend.cards.task_cards import COMPLETE, OPEN, REOPEN, UNDO
from backend.cards.widget import Card
from backend.errors import BackendError, InvalidRequest


class NotCompleted(BackendError):
    """The task could not be completed. It may have been deleted. Ask for the list again."""

    code, status = "not_completed", 409


class NotReopened(BackendError):
    """The task could not be reopened: it was deleted, or its next repeat is already open. Ask to undo it."""

    code, status = "not_reopened", 409


@dataclass(frozen=True, slots=True)
class Click:
    """A click in the card `card_id`. The same click under the same `key` is carried out once."""

    card_id: str
    type: str
    payload: Any
    key: str | None = None


@dataclass(frozen=True, slots=True)
class ClickChange:
    """A call of a task tool. Where the tool rejects it the user reads `rejected`, or else what the tool says.

    `kind` names for the model what the user did: completed, reopened or undone.
    """

    kind: str
    tool: str
    arguments: Mapping[str, Any]
    rejected: type[BackendError] | None = None
    undo_batch: str | None = None


class _OfTask(BaseModel):
    task_id: StrictInt


class _OfBatch(BaseModel):
    batch: StrictStr


@dataclass(frozen=True, slots=True)
class _TaskAction:
    kind: str
    tool: str
    rejected: type[BackendError]
    arguments: Mapping[str, Any] = field(default_factory=dict[str, Any])


_TASK_ACTIONS: Mapping[str, _TaskAction] = {
    COMPLETE: _TaskAction("completed", "complete_task", NotCompleted),
    REOPEN: _TaskAction("reopened", "update_task", NotReopened, {"status": "pending"}),
}


def change_of(click: Click, card: Card) -> ClickChange | None:
    """Returns the change that a click asks for; None for a click that changes nothing.

    Raises `InvalidRequest` for what the card does not offer.
    """
    if click.type == UNDO:
        return _undo(click, card)
    if click.type not in (*_TASK_ACTIONS, OPEN):
        raise InvalidRequest(f"There is no action {click.type!r}.")
    try:
        task_id = _OfTask.model_validate(click.payload).task_id
    except ValidationError:
        raise InvalidRequest(f"The action {click.type} does not belong to this list. Ask for the list again.") from None
    if task_id not in card.task_ids:
        raise InvalidRequest("This task is not in this list. Ask for the list again.")
    if click.type == OPEN:  # the client opens the task itself; one that does not sends it here
        return None
    wanted = _TASK_ACTIONS[click.type]
    return ClickChange(wanted.kind, wanted.tool, {"task_id": task_id, **wanted.arguments}, wanted.rejected)


def _undo(click: Click, card: Card) -> ClickChange:
    """Returns the change that undoes a card's batch. Raises `InvalidRequest` if that is not possible any more."""
    try:
        batch = _OfBatch.model_validate(click.payload).batch
    except ValidationError:
        batch = ""
    if not batch or batch != card.batch:
        raise InvalidRequest("This cannot be undone any more. It was undone already, or the task has changed since.")
    # Which task is named is not looked at: all of the batch's are restored.
    return ClickChange("undone", "update_task", {"task_id": min(card.task_ids)}, undo_batch=batch)


def key_of_act(user_id: str, key: str) -> str:
    """Derives an idempotency key from one that a client chose.

    No other user has it, and it does not reveal that key.
    """
    return f"act_{hashlib.sha256(f'{user_id} {key}'.encode()).hexdigest()}"
