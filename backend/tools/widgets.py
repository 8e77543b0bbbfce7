"""Tasks as widgets, of components that ChatKit's types and the pinned SDK both know."""

from copy import deepcopy
from dataclasses import replace
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from backend.conversation.errors import InvalidRequest
from backend.conversation.items import Json, Widget

COMPLETE = "complete_task"
_SHOWN_AT_FIRST = 20
_SHOWN_AT_MOST = 200
_THE_REST = "more"
_MORE = "There are more: ask for the rest."


class Task(BaseModel):
    """What a widget shows of a tool's Task, or of a DeletedTask."""

    id: int
    title: str
    description: str = ""
    status: Literal["pending", "completed", "deleted"] = "deleted"

    def looks_like(self, other: "Task") -> bool:
        """Whether a box shows both the same."""
        return (self.title, self.status) == (other.title, other.status)


class TaskPage(BaseModel):
    """A result of list_tasks."""

    tasks: list[Task]
    next_cursor: str | None


class _Ticked(BaseModel):
    model_config = ConfigDict(strict=True)

    task_id: int


def task_list(tasks: list[Task], *, more: bool) -> Json:
    """A list with a box for each task; `more` says that there are others."""
    rows = [_list_row(task) for task in tasks[:_SHOWN_AT_MOST]]
    if more or len(tasks) > _SHOWN_AT_MOST:
        rows.append({"type": "ListViewItem", "key": _THE_REST, "children": [{"type": "Caption", "value": _MORE}]})
    return _counted({"type": "ListView", "limit": _SHOWN_AT_FIRST, "children": rows})


def task_card(task: Task, label: str) -> Json:
    """One task, and what became of it."""
    badge = {"type": "Badge", "label": label, "color": "success", "variant": "soft"}
    row = {"type": "Row", "gap": 2, "align": "center", "children": [_box(task), {"type": "Spacer"}, badge]}
    return {"type": "Card", "size": "sm", "children": [row, *_details(task)]}


def item(root: Json) -> Widget:
    """What shows the widget; copied, it is a Markdown list."""
    return Widget(root=root, copy_text=_copied(root))


def ticked_task(action: str, payload: Any, sender: Widget) -> int:
    """The number of the task whose box was ticked; raises `InvalidRequest` for what this widget does not offer."""
    if action != COMPLETE:
        raise InvalidRequest(f"There is no action {action!r}.")
    try:
        task_id = _Ticked.model_validate(payload).task_id
    except ValidationError:
        raise InvalidRequest(f"The action {COMPLETE} needs a task_id: ask for the list again.") from None
    if not any(box.get("key") == _key(task_id) for box in _boxes(sender.root)):
        raise InvalidRequest("This task is not in this widget: ask for the list again.")
    return task_id


def open_tasks(shown: Widget) -> list[Task]:
    """The tasks whose boxes can still be ticked."""
    return [
        Task(id=box["onChangeAction"]["payload"]["task_id"], title=box["label"], status="pending")
        for box in _boxes(shown.root)
        if box.get("onChangeAction")
    ]


def redrawn(shown: Widget, task: Task) -> Widget | None:
    """The same widget with the task as it is now; None when it does not show the task."""
    root = deepcopy(shown.root)
    found = [box for box in _boxes(root) if box.get("key") == _key(task.id)]
    if not found:
        return None
    for box in found:
        box.clear()
        box.update(_box(task))
    root = _counted(root)
    return replace(shown, root=root, copy_text=_copied(root))


def _copied(root: Json) -> str:
    return "\n".join(f"- [{'x' if box['defaultChecked'] else ' '}] {box['label']}" for box in _boxes(root))


def _list_row(task: Task) -> Json:
    children = [_box(task), *_details(task)]
    return {"type": "ListViewItem", "key": f"row-{task.id}", "align": "center", "children": children}


def _box(task: Task) -> Json:
    box: Json = {"type": "Checkbox", "key": _key(task.id), "name": _key(task.id), "label": task.title}
    match task.status:
        case "completed":
            return {**box, "defaultChecked": True, "disabled": True}
        case "deleted":
            return {**box, "label": f"{task.title} (deleted)", "defaultChecked": False, "disabled": True}
        case "pending":
            action = {"type": COMPLETE, "payload": {"task_id": task.id}}
            return {**box, "defaultChecked": False, "onChangeAction": action}


def _key(task_id: int) -> str:
    return f"task-{task_id}"


def _details(task: Task) -> list[Json]:
    if not task.description:
        return []
    return [{"type": "Caption", "value": task.description[:200], "maxLines": 2}]


def _boxes(component: Json) -> list[Json]:
    """The boxes in a widget, in order."""
    if component["type"] == "Checkbox":
        return [component]
    return [box for child in component.get("children", ()) for box in _boxes(child)]


def _counted(widget: Json) -> Json:
    """A list's heading tells how many there are, and how many of them are done."""
    if widget["type"] != "ListView":
        return widget
    boxes = [box for box in _boxes(widget) if box["defaultChecked"] or "onChangeAction" in box]
    done = sum(box["defaultChecked"] for box in boxes)
    tasks = "1 task" if len(boxes) == 1 else f"{len(boxes)} tasks"
    if any(row["key"] == _THE_REST for row in widget["children"]):
        tasks = f"The first {tasks}"
    return {**widget, "status": {"text": f"{tasks}, {done} done" if done else tasks}}
