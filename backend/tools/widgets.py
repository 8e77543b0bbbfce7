"""Tasks as widgets, of components that ChatKit's types and the pinned SDK both know."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from backend.cards.task import Task
from backend.cards.task_details import DUE, tells
from backend.conversation.items import Json, Widget
from backend.tools import task_rows
from backend.tools.task_rows import GONE, UNDO_ALL, Kept, all_of, batch_of, boxes, id_of, is_as_left, undo_buttons

_SHOWN_AT_FIRST = 20
_SHOWN_AT_MOST = 200
_THE_REST, _CHANGED, _UNDO = "more", "changed", "undo"  # keys: of rows without a task, and of what a call did to many
_MORE = "There are more tasks. Ask for the rest to see them."
_SEEN = ("label", "value", "color", "defaultChecked", "disabled")  # of a component


def task_list(tasks: Sequence[Task], *, more: bool, now: datetime | None = None) -> Json:
    """A list with a box for each task; `more` says that there are others, `now` is the person's wall clock."""
    rows = [task_rows.row(task, now) for task in tasks[:_SHOWN_AT_MOST]]
    if more or len(tasks) > _SHOWN_AT_MOST:
        rows.append({"type": "ListViewItem", "key": _THE_REST, "children": [{"type": "Caption", "value": _MORE}]})
    return _counted({"type": "ListView", "limit": _SHOWN_AT_FIRST, "children": rows})


def changed_list(tasks: Sequence[Task], heading: str, *, now: datetime | None = None, undo: Json | None = None) -> Json:
    """What one call did to several tasks; its heading stays, whatever becomes of them."""
    shown = {**task_list(tasks, more=False, now=now), "key": _CHANGED, "status": {"text": heading}}
    if undo is None:
        return shown
    row = {"type": "ListViewItem", "key": _UNDO, "children": [undo]}
    return {**shown, "children": [row, *shown["children"]]}  # above the tasks: not all of them are shown at first


def task_card(task: Task, label: str, *, now: datetime | None = None, undo: Json | None = None) -> Json:
    """One task, and what became of it."""
    badge = {"type": "Badge", "label": label, "color": "success", "variant": "soft"}
    return task_rows.card(task, now, Kept(badge=badge, undo=undo))


def item(root: Json) -> Widget:
    """What shows the widget; copied, it is a Markdown list."""
    return Widget(root=root, copy_text=_copied(root))


def task_ids(shown: Widget) -> list[int]:
    """The numbers of the tasks for which there are boxes in it."""
    return [id_of(box) for box in boxes(shown.root)]


def takes_back(shown: Widget, batch: str) -> bool:
    """Whether there is a button in it that takes the batch back."""
    return any(batch_of(button) == batch for button in undo_buttons(shown.root))


def form_of(shown: Widget, task_id: int) -> Json | None:
    """The form in which the task is being changed."""
    rows = [row for row in _rows(shown.root) if _is_of(row, task_id)]
    return next((form for row in rows for form in all_of(row, "Form")), None)


def changeable_tasks(shown: Widget) -> list[Task]:
    """The tasks that may look otherwise by now, as far as they are known: their numbers and titles."""
    with_gone = bool(undo_buttons(shown.root))  # they may be back
    found = [box for box in boxes(shown.root) if with_gone or box.get("onChangeAction")]
    return [Task(id=id_of(box), title=box["label"].removesuffix(GONE)) for box in found]


def redrawn(
    shown: Widget,
    tasks: Iterable[Task],
    *,
    now: datetime | None = None,
    undone: str | None = None,
    undo: Json | None = None,
) -> Widget | None:
    """The same widget with these tasks as they are now; None when it shows none of them.

    `undone` is the batch that was taken back, if that is what changed them; `undo` takes this change back.
    """
    by_id = {task.id: task for task in tasks}
    if by_id.keys().isdisjoint(task_ids(shown)):
        return None
    return _with_rows(shown, [_row_redrawn(row, by_id, now, undone, undo) for row in _rows(shown.root)], undone)


def with_form(shown: Widget, task_id: int, form: Json | None) -> Widget:
    """The same widget with this form for the task, or with none."""
    rows = [task_rows.with_form(row, form) if _is_of(row, task_id) else row for row in _rows(shown.root)]
    return _with_rows(shown, rows)


def with_all_undone(shown: Widget, batch: str) -> Widget | None:
    """The same widget, whose button says that it takes back more than this; None if it has none, or says so."""
    if all(batch_of(button) != batch or button["label"] == UNDO_ALL for button in undo_buttons(shown.root)):
        return None
    return _with_rows(shown, [_relabelled(row, batch) for row in _rows(shown.root)])


def looks_like(one: Widget, other: Widget) -> bool:
    """Whether both show the same, whatever else their components have."""
    return _look(one.root) == _look(other.root)


def _look(component: Json) -> list[Any]:
    if "children" not in component:
        return [component.get(name) for name in _SEEN]
    return [_look(child) for child in component["children"]]


def _is_of(row: Json, task_id: int) -> bool:
    return any(id_of(box) == task_id for box in boxes(row))


def _rows(root: Json) -> list[Json]:
    return root["children"] if root["type"] == "ListView" else [root]


def _with_rows(shown: Widget, rows: list[Json], undone: str | None = None) -> Widget:
    root = rows[0] if shown.root["type"] != "ListView" else _counted(_settled({**shown.root, "children": rows}, undone))
    return replace(shown, root=root, copy_text=_copied(root))


def _row_redrawn(
    row: Json, by_id: Mapping[int, Task], now: datetime | None, undone: str | None, undo: Json | None
) -> Json:
    if (task := next((by_id.get(id_of(box)) for box in boxes(row)), None)) is None:
        return row
    kept = Kept.of(row).after_undo(undone, task)
    kept = kept if undo is None else replace(kept, undo=undo)
    return task_rows.card(task, now, kept) if row["type"] == "Card" else task_rows.row(task, now, kept)


def _settled(root: Json, undone: str | None) -> Json:
    """A list that a call changed, without its button when there is nothing more to take back."""
    [row, *others] = root["children"] or [{}]
    if row.get("key") != _UNDO:
        return root
    [undo] = row["children"]
    if batch_of(undo) == undone:
        return {**root, "children": others, "status": {"text": f"Undone: {root['status']['text']}"}}
    return root if is_as_left(undo, boxes(root)) else {**root, "children": others}


def _relabelled(component: Json, batch: str) -> Json:
    if "children" in component:
        return {**component, "children": [_relabelled(child, batch) for child in component["children"]]}
    names_it = any(batch_of(button) == batch for button in undo_buttons(component))
    return {**component, "label": UNDO_ALL} if names_it else component


def _copied(root: Json) -> str:
    return "\n".join(_line(row, box) for row in _rows(root) for box in boxes(row))


def _line(row: Json, box: Json) -> str:
    due = "".join(f" ({badge['label']})" for badge in all_of(row, "Badge") if tells(badge, DUE))
    return f"- [{'x' if box['defaultChecked'] else ' '}] {box['label']}{due}"


def _counted(widget: Json) -> Json:
    """A list's heading tells how many there are, and how many of them are done, if it has none of its own."""
    if widget.get("key") == _CHANGED:
        return widget
    there = [box for box in boxes(widget) if box["defaultChecked"] or "onChangeAction" in box]
    done = sum(box["defaultChecked"] for box in there)
    tasks = "1 task" if len(there) == 1 else f"{len(there)} tasks"
    if any(row["key"] == _THE_REST for row in widget["children"]):
        tasks = f"The first {tasks}"
    return {**widget, "status": {"text": f"{tasks}, {done} done" if done else tasks}}
