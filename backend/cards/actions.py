"""What a click in a card asks for: a change of a task, or that the changes of an answer are undone."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

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


_CHANGES: Mapping[str, ClickChange] = {
    COMPLETE: ClickChange("completed", "complete_task", {}, NotCompleted),
    REOPEN: ClickChange("reopened", "update_task", {"status": "pending"}, NotReopened),
}


def change_of(click: Click, card: Card) -> ClickChange | None:
    """Returns None for a click that changes nothing. Raises `InvalidRequest` for what the card does not offer."""
    payload = click.payload if isinstance(click.payload, dict) else {}
    if click.type == UNDO:
        if card.batch is None or payload.get("batch") != card.batch:
            raise InvalidRequest(
                "This cannot be undone any more. It was undone already, or the task has changed since."
            )
        # Which task is named is not looked at: all of the batch's are restored.
        return ClickChange("undone", "update_task", {"task_id": min(card.task_ids)}, undo_batch=card.batch)
    if click.type not in (*_CHANGES, OPEN):
        raise InvalidRequest(f"There is no action {click.type!r}.")
    task_id = payload.get("task_id")
    if type(task_id) is not int:
        raise InvalidRequest(f"The action {click.type} does not belong to this list. Ask for the list again.")
    if task_id not in card.task_ids:
        raise InvalidRequest("This task is not in this list. Ask for the list again.")
    if click.type == OPEN:  # the client opens the task itself; one that does not sends it here
        return None
    change = _CHANGES[click.type]
    return replace(change, arguments={"task_id": task_id, **change.arguments})
