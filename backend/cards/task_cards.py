"""One task in a widget: a row of a list or a card of its own, with its details and what a user can do to it there."""

from collections.abc import Sequence
from datetime import date, datetime
from typing import Any

from backend.cards.task import Task
from backend.cards.widget import Json, action, badge, caption, column, quiet_button, row
from common.pauses import with_pauses
from common.task_words import FieldWords, describe_due, select_fields

COMPLETE, REOPEN, UNDO = "complete_task", "reopen_task", "undo"  # types of actions
OPEN = "open_task"  # the client's: it shows the task in its list

_SHOWN_AT_FIRST, _MAX_SHOWN = 20, 200  # tasks of a list
_MORE = "There are more tasks. Ask for the rest to see them."
_DELETED = " (deleted)"
_PRIORITIES = {"high": ("High", "danger"), "medium": ("Medium", "warning"), "low": ("Low", "secondary")}
_QUIET = "secondary"

# Keys begin with it: of the badge that says when a task is due, and of the words that say when the one after it is.
# The date follows, as our page writes it in its reader's language (web/chat/widgets.js).
_DUE, _NEXT = "due", "next"


def render_task_card(task: Task, label: str, *, now: datetime | None, undo: Json | None) -> Json:
    head = row(badge(label, "success"), *([undo] if undo else []), *_open_buttons(task), wrap="nowrap")
    first = row(_render_checkbox(task), {"type": "Spacer"}, head)
    return {"type": "Card", "size": "sm", "children": [first, *_below(task, now)]}


async def render_changed_tasks(tasks: Sequence[Task], heading: str, *, now: datetime | None, undo: Json | None) -> Json:
    # Above the tasks, of which only the first are shown at once.
    first = [{"type": "ListViewItem", "key": "undo", "children": [undo]}] if undo else []
    return _list([*first, *await _render_rows(tasks, now)], heading)


async def render_task_list(tasks: Sequence[Task], *, has_more: bool, now: datetime | None) -> Json:
    rows = await _render_rows(tasks, now)
    has_more = has_more or len(tasks) > _MAX_SHOWN
    if has_more:
        rows.append({"type": "ListViewItem", "key": "more", "children": [caption(_MORE)]})
    counted = [task for task in tasks[:_MAX_SHOWN] if task.status != "deleted"]
    done = sum(task.status == "completed" for task in counted)
    heading = "1 task" if len(counted) == 1 else f"{len(counted)} tasks"
    heading = f"The first {heading}" if has_more else heading
    return _list(rows, f"{heading}, {done} done" if done else heading)


def undo_button(batch: str, *, with_others: bool) -> Json:
    """Renders the button that undoes all that a batch has changed, which may be more than the task on the card."""
    label = "Undo all" if with_others else "Undo"
    return quiet_button(action(UNDO, {"batch": batch}), key=UNDO, label=label)


def render_changes_line(line: str, *, undo: Json | None) -> Json:
    """Renders what an answer has changed as a quiet line, with the button that undoes all of it."""
    text = {"type": "Text", "value": line, "size": "sm", "color": _QUIET}
    return {
        "type": "Basic",
        "direction": "row",
        "gap": 2,
        "align": "center",
        "children": [text, *([undo] if undo else [])],
    }


async def copy_text(tasks: Sequence[Task], now: datetime | None) -> str:
    return "\n".join([_render_copy_text(task, now) async for task in with_pauses(tasks[:_MAX_SHOWN])])


def _list(rows: Sequence[Json], heading: str) -> Json:
    return {"type": "ListView", "limit": _SHOWN_AT_FIRST, "status": {"text": heading}, "children": [*rows]}


async def _render_rows(tasks: Sequence[Task], now: datetime | None) -> list[Json]:
    return [_task_row(task, now) async for task in with_pauses(tasks[:_MAX_SHOWN])]


def _task_row(task: Task, now: datetime | None) -> Json:
    described = column(_render_checkbox(task), *_below(task, now), flex=1)
    children = [described, *_open_buttons(task)]
    return {"type": "ListViewItem", "key": f"row-{task.id}", "align": "start", "children": children}


def _render_checkbox(task: Task) -> Json:
    key = f"task-{task.id}"
    box: Json = {"type": "Checkbox", "key": key, "name": key, "label": _render_label(task)}
    if task.status == "deleted":
        return {**box, "defaultChecked": False, "disabled": True}
    is_done = task.status == "completed"
    clicked = action(REOPEN if is_done else COMPLETE, {"task_id": task.id})
    return {**box, "defaultChecked": is_done, "onChangeAction": clicked}


def _render_label(task: Task) -> str:
    return f"{task.title}{_DELETED}" if task.status == "deleted" else task.title


def _below(task: Task, now: datetime | None) -> list[Json]:
    description = [caption(task.description[:200], maxLines=2)] if task.description else []
    return [*description, *_render_details(task, now)]


def _open_buttons(task: Task) -> list[Json]:
    if task.status == "deleted":
        return []
    clicked = action(OPEN, {"task_id": task.id}, on_client=True)
    return [quiet_button(clicked, key=f"open-{task.id}", iconStart="external-link", uniform=True)]


def _render_copy_text(task: Task, now: datetime | None) -> str:
    due = f" ({describe_due(task.due, now)})" if task.due and task.status != "deleted" else ""
    return f"- [{'x' if task.status == 'completed' else ' '}] {_render_label(task)}{due}"


def _render_details(task: Task, now: datetime | None) -> list[Json]:
    """Renders badges in one line, or none; without `now`, the user's wall clock, nothing is overdue."""
    if task.status == "deleted":
        return []
    parts = [
        *([_render_due(task, task.due, now)] if task.due else []),
        *(_render_field(task, field, value) for field, value in select_fields(vars(task))),
    ]
    if task.status == "completed" and task.next is not None:
        following = task.next.due
        parts.append(caption(f"next on {describe_due(following, now)}", key=_create_key(_NEXT, following)))
    return [row(*parts)] if parts else []


def _render_due(task: Task, due: date, now: datetime | None) -> Json:
    color = _QUIET if task.status == "completed" or now is None else _choose_due_color(due, now)
    return badge(describe_due(due, now), color, "outline") | {"key": _create_key(_DUE, due)}


def _choose_due_color(due: date, now: datetime) -> str:
    """Returns the colour of a due date. A day is overdue when it is over, a time when it has come."""
    day = due.date() if isinstance(due, datetime) else due
    if day < now.date() or (isinstance(due, datetime) and due <= now):
        return "danger"
    return "warning" if day == now.date() else _QUIET


def _render_field(task: Task, field: FieldWords, value: Any) -> Json:
    """Renders a field as a caption, unless it has a component of its own."""
    match field.name:
        case "priority":
            label, color = _PRIORITIES[value]
            return badge(label, _QUIET if task.status == "completed" else color)
        case "repeat":
            icon = {"type": "Icon", "name": "reload", "size": "sm", "color": _QUIET}
            children = [icon, caption(" ".join(field.describe(value)))]
            return {"type": "Row", "gap": 1, "align": "center", "children": children}
        case _:
            return caption(" ".join(field.describe(value)))


def _create_key(kind: str, due: date) -> str:
    """Returns the key of a component, which ends with the date for our page."""
    return f"{kind}-{due.isoformat()[: len('2026-11-23T15:00')]}"
