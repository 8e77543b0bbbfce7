"""Tasks as widgets, of components that ChatKit's types and the pinned SDK both know."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from backend.conversation.items import Json, Widget
from backend.tools.details import DUE, NEXT, details
from backend.tools.task import Task

COMPLETE, REOPEN = "complete_task", "reopen_task"  # types of actions
_SHOWN_AT_FIRST = 20
_SHOWN_AT_MOST = 200
_THE_REST, _CHANGED = "more", "changed"  # keys: of the row that says so, and of a list with a heading of its own
_MORE = "There are more: ask for the rest."
_SEEN = ("label", "value", "color", "defaultChecked", "disabled")  # of a component


def task_list(tasks: Sequence[Task], *, more: bool, now: datetime | None = None) -> Json:
    """A list with a box for each task; `more` says that there are others, `now` is the person's wall clock."""
    rows = [_list_row(task, now) for task in tasks[:_SHOWN_AT_MOST]]
    if more or len(tasks) > _SHOWN_AT_MOST:
        rows.append({"type": "ListViewItem", "key": _THE_REST, "children": [{"type": "Caption", "value": _MORE}]})
    return _counted({"type": "ListView", "limit": _SHOWN_AT_FIRST, "children": rows})


def changed_list(tasks: Sequence[Task], heading: str, *, now: datetime | None = None) -> Json:
    """What one call did to several tasks; its heading stays, whatever becomes of them."""
    return {**task_list(tasks, more=False, now=now), "key": _CHANGED, "status": {"text": heading}}


def task_card(task: Task, label: str, *, now: datetime | None = None) -> Json:
    """One task, and what became of it."""
    badge = {"type": "Badge", "label": label, "color": "success", "variant": "soft"}
    return {"type": "Card", "size": "sm", "children": _card_children(task, badge, now)}


def item(root: Json) -> Widget:
    """What shows the widget; copied, it is a Markdown list."""
    return Widget(root=root, copy_text=_copied(root))


def shows(shown: Widget, task_id: int) -> bool:
    """Whether there is a box for the task in it."""
    return any(box.get("key") == _key(task_id) for box in _boxes(shown.root))


def changeable_tasks(shown: Widget) -> list[Task]:
    """The tasks whose boxes can be ticked or unticked: their numbers and titles."""
    return [
        Task(id=box["onChangeAction"]["payload"]["task_id"], title=box["label"])
        for box in _boxes(shown.root)
        if box.get("onChangeAction")
    ]


def redrawn(shown: Widget, tasks: Iterable[Task], *, now: datetime | None = None) -> Widget | None:
    """The same widget with these tasks as they are now; None when it shows none of them."""
    by_key = {_key(task.id): task for task in tasks}
    if not any(box.get("key") in by_key for box in _boxes(shown.root)):
        return None
    if shown.root["type"] == "Card":
        root = _card_redrawn(shown.root, by_key, now)
    else:
        rows = [_row_redrawn(row, by_key, now) for row in shown.root["children"]]
        root = _counted({**shown.root, "children": rows})
    return replace(shown, root=root, copy_text=_copied(root))


def looks_like(one: Widget, other: Widget) -> bool:
    """Whether both show the same, whatever else their components have."""
    return _look(one.root) == _look(other.root)


def _look(component: Json) -> list[Any]:
    if "children" not in component:
        return [component.get(name) for name in _SEEN]
    return [_look(child) for child in component["children"]]


def _card_redrawn(card: Json, by_key: Mapping[str, Task], now: datetime | None) -> Json:
    [box], badge = _boxes(card), card["children"][0]["children"][-1]
    return {**card, "children": _card_children(by_key[box["key"]], badge, now, _said_of_the_next(card))}


def _row_redrawn(row: Json, by_key: Mapping[str, Task], now: datetime | None) -> Json:
    keys = [box["key"] for box in _boxes(row)]
    return _list_row(by_key[keys[0]], now, _said_of_the_next(row)) if keys and keys[0] in by_key else row


def _copied(root: Json) -> str:
    rows = root["children"] if root["type"] == "ListView" else [root]
    return "\n".join(_line(row, box) for row in rows for box in _boxes(row))


def _line(row: Json, box: Json) -> str:
    due = "".join(f" ({badge['label']})" for badge in _all(row, "Badge") if badge.get("key") == DUE)
    return f"- [{'x' if box['defaultChecked'] else ' '}] {box['label']}{due}"


def _card_children(task: Task, badge: Json, now: datetime | None, kept: Sequence[Json] = ()) -> list[Json]:
    head = {"type": "Row", "gap": 2, "align": "center", "children": [_box(task), {"type": "Spacer"}, badge]}
    return [head, *_description(task), *details(task, now, kept)]


def _list_row(task: Task, now: datetime | None, kept: Sequence[Json] = ()) -> Json:
    children = [_box(task), *_description(task)]
    if below := details(task, now, kept):
        children = [{"type": "Col", "gap": 1, "children": [*children, *below]}]
    return {"type": "ListViewItem", "key": f"row-{task.id}", "align": "center", "children": children}


def _box(task: Task) -> Json:
    box: Json = {"type": "Checkbox", "key": _key(task.id), "name": _key(task.id), "label": task.title}
    if task.status == "deleted":
        return {**box, "label": f"{task.title} (deleted)", "defaultChecked": False, "disabled": True}
    done = task.status == "completed"
    action = {"type": REOPEN if done else COMPLETE, "payload": {"task_id": task.id}}
    return {**box, "defaultChecked": done, "onChangeAction": action}


def _key(task_id: int) -> str:
    return f"task-{task_id}"


def _description(task: Task) -> list[Json]:
    if not task.description:
        return []
    return [{"type": "Caption", "value": task.description[:200], "maxLines": 2}]


def _said_of_the_next(component: Json) -> list[Json]:
    """What a widget says of the task that follows a completed one, which later results do not tell again."""
    return [words for words in _all(component, "Caption") if words.get("key") == NEXT]


def _boxes(component: Json) -> list[Json]:
    return _all(component, "Checkbox")


def _all(component: Json, kind: str) -> list[Json]:
    """The components of a kind in a widget, in order."""
    if component["type"] == kind:
        return [component]
    return [found for child in component.get("children", ()) for found in _all(child, kind)]


def _counted(widget: Json) -> Json:
    """A list's heading tells how many there are, and how many of them are done, if it has none of its own."""
    if widget.get("key") == _CHANGED:
        return widget
    boxes = [box for box in _boxes(widget) if box["defaultChecked"] or "onChangeAction" in box]
    done = sum(box["defaultChecked"] for box in boxes)
    tasks = "1 task" if len(boxes) == 1 else f"{len(boxes)} tasks"
    if any(row["key"] == _THE_REST for row in widget["children"]):
        tasks = f"The first {tasks}"
    return {**widget, "status": {"text": f"{tasks}, {done} done" if done else tasks}}
