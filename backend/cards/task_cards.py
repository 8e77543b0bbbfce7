"""One task in a widget: a row of a list or a card of its own, with what a user can do to it there."""

from collections.abc import Sequence
from datetime import datetime

from backend.cards.task import Task
from backend.cards.task_details import due_in_words, render_details
from backend.cards.widget import Json, action, badge, caption, column, quiet_button, row

COMPLETE, REOPEN, UNDO = "complete_task", "reopen_task", "undo"  # types of actions
OPEN = "open_task"  # the client's: it shows the task in its list

_SHOWN_AT_FIRST, _SHOWN_AT_MOST = 20, 200
_MORE = "There are more tasks. Ask for the rest to see them."
_DELETED = " (deleted)"


def render_task_card(task: Task, label: str, *, now: datetime | None, undo: Json | None) -> Json:
    """Renders one task as a card; `label` says what became of it."""
    head = row(badge(label, "success"), *([undo] if undo else []), *_open_buttons(task), wrap="nowrap")
    first = row(_box(task), {"type": "Spacer"}, head)
    return {"type": "Card", "size": "sm", "children": [first, *_below(task, now)]}


def render_changed_tasks(tasks: Sequence[Task], heading: str, *, now: datetime | None, undo: Json | None) -> Json:
    """Renders what one call did to many tasks as a list."""
    # Above the tasks, of which only the first are shown at once.
    first = [{"type": "ListViewItem", "key": "undo", "children": [undo]}] if undo else []
    return _list([*first, *(_task_row(task, now) for task in tasks[:_SHOWN_AT_MOST])], heading)


def render_task_list(tasks: Sequence[Task], *, has_more: bool, now: datetime | None) -> Json:
    """Renders tasks as a list with a box for each.

    Its heading tells how many there are, and how many of them are done.
    """
    rows = [_task_row(task, now) for task in tasks[:_SHOWN_AT_MOST]]
    has_more = has_more or len(tasks) > _SHOWN_AT_MOST
    if has_more:
        rows.append({"type": "ListViewItem", "key": "more", "children": [caption(_MORE)]})
    counted = [task for task in tasks[:_SHOWN_AT_MOST] if task.status != "deleted"]
    done = sum(task.status == "completed" for task in counted)
    heading = "1 task" if len(counted) == 1 else f"{len(counted)} tasks"
    heading = f"The first {heading}" if has_more else heading
    return _list(rows, f"{heading}, {done} done" if done else heading)


def undo_button(batch: str, *, with_others: bool) -> Json:
    """Renders the button that undoes all that a batch has changed, which may be more than the task on the card."""
    label = "Undo all" if with_others else "Undo"
    return quiet_button(action(UNDO, {"batch": batch}), key=UNDO, label=label)


def copy_text(tasks: Sequence[Task], now: datetime | None) -> str:
    """Renders the tasks as a Markdown list, for copying."""
    return "\n".join(_copied(task, now) for task in tasks[:_SHOWN_AT_MOST])


def _list(rows: Sequence[Json], heading: str) -> Json:
    return {"type": "ListView", "limit": _SHOWN_AT_FIRST, "status": {"text": heading}, "children": [*rows]}


def _task_row(task: Task, now: datetime | None) -> Json:
    """Renders a task as a row of a list."""
    described = column(_box(task), *_below(task, now), flex=1)
    children = [described, *_open_buttons(task)]
    return {"type": "ListViewItem", "key": f"row-{task.id}", "align": "start", "children": children}


def _box(task: Task) -> Json:
    """Renders the checkbox of a task, which completes or reopens it; of a deleted task it is disabled."""
    key = f"task-{task.id}"
    box: Json = {"type": "Checkbox", "key": key, "name": key, "label": _label(task)}
    if task.status == "deleted":
        return {**box, "defaultChecked": False, "disabled": True}
    is_done = task.status == "completed"
    clicked = action(REOPEN if is_done else COMPLETE, {"task_id": task.id})
    return {**box, "defaultChecked": is_done, "onChangeAction": clicked}


def _label(task: Task) -> str:
    """Returns the title of a task, marked if it is deleted."""
    return f"{task.title}{_DELETED}" if task.status == "deleted" else task.title


def _below(task: Task, now: datetime | None) -> list[Json]:
    """Renders what is shown below a task's title: its description and details."""
    description = [caption(task.description[:200], maxLines=2)] if task.description else []
    return [*description, *render_details(task, now)]


def _open_buttons(task: Task) -> list[Json]:
    """Renders the button that opens a task in the page's list; none for a deleted task."""
    if task.status == "deleted":
        return []
    clicked = action(OPEN, {"task_id": task.id}, on_client=True)
    return [quiet_button(clicked, key=f"open-{task.id}", iconStart="external-link", uniform=True)]


def _copied(task: Task, now: datetime | None) -> str:
    """Renders a task as a line of a Markdown list."""
    due = f" ({due_in_words(task.due, now)})" if task.due and task.status != "deleted" else ""
    return f"- [{'x' if task.status == 'completed' else ' '}] {_label(task)}{due}"
