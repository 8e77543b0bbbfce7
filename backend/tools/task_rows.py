"""One task in a widget: a row of a list or a card, with all that a person can do to it there."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from backend.cards.task import Task
from backend.cards.task_details import NEXT, details, tells
from backend.conversation.items import Json
from backend.tools import edit_form

COMPLETE, REOPEN, UNDO = "complete_task", "reopen_task", "undo"  # types of actions
OPEN = "open_task"  # the client's: it shows the task in its list
UNDO_ALL = "Undo all"
GONE = " (deleted)"
_TASK = "task-"  # begins the key of a task's box


@dataclass(frozen=True)
class Kept:
    """What is shown of a task that later results of the tools do not tell.

    That is what became of it, how to take that back, a form that is open, and when the next one of a repeat is due.
    """

    badge: Json | None = None
    undo: Json | None = None
    form: Json | None = None
    following: Sequence[Json] = ()

    @classmethod
    def of(cls, shown: Json) -> "Kept":
        """What a row or a card shows."""
        return cls(
            badge=next(iter(all_of(shown, "Badge")), None) if shown["type"] == "Card" else None,
            undo=next(iter(undo_buttons(shown)), None),
            form=next(iter(all_of(shown, "Form")), None),
            following=[words for words in all_of(shown, "Caption") if tells(words, NEXT)],
        )

    def after_undo(self, batch: str | None, task: Task) -> "Kept":
        """The same when a batch was taken back: the badge says so, if what it tells of was part of that."""
        if batch is None or self.undo is None or batch_of(self.undo) != batch:
            return self
        restored = self.undo["key"] == _as_left(["deleted"]) and task.status != "deleted"
        badge = self.badge and {**self.badge, "label": "Restored" if restored else "Undone"}
        return replace(self, badge=badge, undo=None)


def row(task: Task, now: datetime | None, kept: Kept | None = None) -> Json:
    """A row of a list; `now` is the person's wall clock."""
    kept = kept or Kept()
    column: Json = {"type": "Col", "gap": 1, "flex": 1, "children": [box(task), *_below(task, now, kept)]}
    return {
        "type": "ListViewItem",
        "key": f"row-{task.id}",
        "align": "start",
        "children": [column, *_buttons(task, kept)],
    }


def card(task: Task, now: datetime | None, kept: Kept) -> Json:
    """A card of one task."""
    badge = [kept.badge] if kept.badge else []
    beside = {"type": "Row", "gap": 2, "align": "center", "children": [*badge, *_buttons(task, kept)]}
    head = [box(task), {"type": "Spacer"}, beside]  # or below it, on a small screen
    first = {"type": "Row", "gap": 2, "wrap": "wrap", "align": "center", "children": head}
    return {"type": "Card", "size": "sm", "children": [first, *_below(task, now, kept)]}


def with_form(shown: Json, form: Json | None) -> Json:
    """The same row or card with this form below, instead of the one that may be there; or with none."""
    kept = [child for child in shown["children"] if child["type"] != "Form"]
    if shown["type"] == "Card":
        return {**shown, "children": [*kept, *([form] if form else [])]}
    buttons = [child for child in kept if child["type"] == "Button"]
    beside = [child for child in kept if child["type"] != "Button"]
    if beside[0]["type"] == "Col":
        beside = [child for child in beside[0]["children"] if child["type"] != "Form"]
    column = {"type": "Col", "gap": 1, "flex": 1, "children": [*beside, *([form] if form else [])]}
    return {**shown, "children": [column, *buttons]}


def undo_button(batch: str, tasks: Iterable[Task], *, with_others: bool = False) -> Json:
    """Takes back all that a batch has changed: these tasks, or others with them.

    It stays for as long as the tasks' boxes are as they are now: a later change has to be taken back first.
    """
    return {
        "type": "Button",
        "key": _as_left(task.status for task in tasks),
        "label": UNDO_ALL if with_others else "Undo",
        "size": "sm",
        "variant": "ghost",
        "color": "secondary",
        "onClickAction": {"type": UNDO, "payload": {"batch": batch}},
    }


def undo_buttons(shown: Json) -> list[Json]:
    """Those in a widget or a part of it."""
    return [button for button in all_of(shown, "Button") if (button.get("onClickAction") or {}).get("type") == UNDO]


def batch_of(undo: Json) -> str:
    """What a button takes back."""
    return undo["onClickAction"]["payload"]["batch"]


def is_as_left(undo: Json, boxes: Iterable[Json]) -> bool:
    """Whether the boxes are as they were when the button was made."""
    return undo["key"] == _as_left(map(_status, boxes))


def box(task: Task) -> Json:
    """To be ticked, and what a task is found by in a widget."""
    key = f"{_TASK}{task.id}"
    drawn: Json = {"type": "Checkbox", "key": key, "name": key, "label": task.title}
    if task.status == "deleted":
        return {**drawn, "label": f"{task.title}{GONE}", "defaultChecked": False, "disabled": True}
    done = task.status == "completed"
    action = {"type": REOPEN if done else COMPLETE, "payload": {"task_id": task.id}}
    return {**drawn, "defaultChecked": done, "onChangeAction": action}


def boxes(shown: Json) -> list[Json]:
    """Those of tasks, in a widget or a part of it."""
    return [found for found in all_of(shown, "Checkbox") if str(found.get("key")).startswith(_TASK)]


def id_of(box: Json) -> int:
    """The number of the task."""
    return int(box["key"].removeprefix(_TASK))


def all_of(component: Json, kind: str) -> list[Json]:
    """The components of a kind in a widget or a part of it, in order."""
    if component["type"] == kind:
        return [component]
    return [found for child in component.get("children", ()) for found in all_of(child, kind)]


def _below(task: Task, now: datetime | None, kept: Kept) -> list[Json]:
    description = [{"type": "Caption", "value": task.description[:200], "maxLines": 2}] if task.description else []
    form = [kept.form] if kept.form and task.status != "deleted" else []
    return [*description, *details(task, now, kept.following), *form]


def _buttons(task: Task, kept: Kept) -> list[Json]:
    undo = [kept.undo] if kept.undo and is_as_left(kept.undo, [box(task)]) else []
    return undo if task.status == "deleted" else [*undo, edit_form.button(task), _open_button(task)]


def _open_button(task: Task) -> Json:
    return {
        "type": "Button",
        "key": f"open-{task.id}",
        "iconStart": "external-link",
        "size": "sm",
        "variant": "ghost",
        "color": "secondary",
        "uniform": True,
        "onClickAction": {"type": OPEN, "payload": {"task_id": task.id}, "handler": "client"},
    }


def _as_left(statuses: Iterable[str]) -> str:
    """The key of a button: how many of its tasks were open, done and gone."""
    found = [*statuses]
    return "-".join([UNDO, *(str(found.count(status)) for status in ("pending", "completed", "deleted"))])


def _status(box: Json) -> str:
    if box.get("disabled"):
        return "deleted"
    return "completed" if box["defaultChecked"] else "pending"
