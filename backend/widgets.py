"""Tasks as ChatKit widgets, of components that ChatKit's types and the pinned SDK both know."""

from typing import Any, Literal

from chatkit.actions import Action
from chatkit.types import WidgetItem
from chatkit.widgets import WidgetRoot
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from backend.errors import InvalidRequest
from database import new_id, utc_now

COMPLETE = "complete_task"
_WIDGET = TypeAdapter[WidgetRoot](WidgetRoot)
_SHOWN_AT_FIRST = 20
_SHOWN_AT_MOST = 200
_THE_REST = "more"
_MORE = "There are more: ask for the rest."

Json = dict[str, Any]


class Task(BaseModel):
    """What a widget shows of a tool's Task, or of a DeletedTask."""

    id: int
    title: str
    description: str = ""
    status: Literal["pending", "completed", "deleted"] = "deleted"


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


def item(thread_id: str, widget: Json) -> WidgetItem:
    """A thread item that shows the widget; copied, it is a Markdown list."""
    return WidgetItem(
        id=new_id("wid"),
        thread_id=thread_id,
        created_at=utc_now(),
        widget=_WIDGET.validate_python(widget),
        copy_text="\n".join(f"- [{'x' if box['defaultChecked'] else ' '}] {box['label']}" for box in _boxes(widget)),
    )


def ticked_task(action: Action[str, Any], sender: WidgetItem) -> int:
    """The number of the task whose box was ticked; raises `InvalidRequest` for what this widget does not offer."""
    if action.type != COMPLETE:
        raise InvalidRequest(f"There is no action {action.type!r}.")
    try:
        task_id = _Ticked.model_validate(action.payload).task_id
    except ValidationError:
        raise InvalidRequest(f"The action {COMPLETE} needs a task_id: ask for the list again.") from None
    if not any(box.get("key") == _key(task_id) for box in _boxes(sender.widget.model_dump(mode="json"))):
        raise InvalidRequest("This task is not in this widget: ask for the list again.")
    return task_id


def redrawn(shown: WidgetItem, task: Task) -> WidgetItem | None:
    """The same widget with the task as it is now; None when it does not show the task."""
    widget = shown.widget.model_dump(mode="json")
    found = [box for box in _boxes(widget) if box.get("key") == _key(task.id)]
    if not found:
        return None
    for box in found:
        box.clear()
        box.update(_box(task))
    fresh = item(shown.thread_id, _counted(widget))
    return fresh.model_copy(update={"id": shown.id, "created_at": shown.created_at})


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
