"""A form to change a task by hand: how it is opened and drawn, and what of it the person has changed."""

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from backend.cards.task import Task
from backend.conversation.items import Json
from backend.errors import InvalidRequest

EDIT, SAVE, CLOSE, DELETE = "edit_task", "save_task", "close_form", "delete_task"  # types of actions

WallTime = Callable[[datetime], datetime]
"""What the person's clock shows at an instant."""

# A field that is named as a key of the action's payload would not be sent: none of those begins so.
_FIELD = "edit"
_TIME = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)", re.ASCII)
_NO_PRIORITY = "none"
_PRIORITIES = {_NO_PRIORITY: "None", "high": "High", "medium": "Medium", "low": "Low"}
_UNCHANGED = "Nothing was changed."


class _Filled(NamedTuple):
    """What the fields hold, each as it is compared."""

    title: str
    due: str
    time: str
    priority: str
    labels: tuple[str, ...]


def button(task: Task) -> Json:
    """Opens the form. Its action says what that is to show: the task as the button's row shows it."""
    told: Json = {"task_id": task.id, "title": task.title}
    if task.due:
        told["due"] = f"{task.due:%a %Y-%m-%d %H:%M}" if isinstance(task.due, datetime) else f"{task.due:%a %Y-%m-%d}"
    if task.priority:
        told["priority"] = task.priority
    if task.labels:
        told["labels"] = [*task.labels]
    return {
        "type": "Button",
        "key": f"edit-{task.id}",
        "iconStart": "dots-horizontal",
        "size": "sm",
        "variant": "ghost",
        "color": "secondary",
        "uniform": True,
        "onClickAction": {"type": EDIT, "payload": told},
    }


def form(task: Task) -> Json:
    """The fields with what is known of the task."""
    time = f"{task.due:%H:%M}" if isinstance(task.due, datetime) else ""
    options = [{"value": value, "label": label} for value, label in _PRIORITIES.items()]
    # As ISO has it: `%Y` writes years before 1000, which a click may name, with fewer digits than a date has.
    day = {"defaultValue": task.due.isoformat()[:10]} if task.due else {}
    due = [
        _field("Due", "due", "DatePicker", clearable=True, **day),
        _field("Time", "time", "Input", defaultValue=time, pattern=_TIME.pattern, placeholder="15:00"),
        _field("Priority", "priority", "Select", options=options, defaultValue=task.priority or _NO_PRIORITY),
    ]
    return {
        "type": "Form",
        "key": f"form-{task.id}",
        "direction": "col",
        "gap": 2,
        "onSubmitAction": _action(SAVE, task),
        "children": [
            _field("Title", "title", "Input", defaultValue=task.title, required=True),
            {"type": "Row", "gap": 2, "wrap": "wrap", "children": due},
            _field("Labels", "labels", "Input", defaultValue=", ".join(task.labels), placeholder="home, work"),
            {
                "type": "Row",
                "gap": 2,
                "align": "center",
                "children": [
                    {"type": "Button", "label": "Save", "submit": True, "size": "sm", "color": "primary"},
                    _button("Cancel", CLOSE, task, color="secondary"),
                    {"type": "Spacer"},
                    _button("Delete", DELETE, task, color="danger"),
                ],
            },
        ],
    }


def changed(shown: Json, payload: Mapping[str, Any], here: WallTime) -> Json:
    """The arguments of update_task for what differs from the form as it was shown; none if nothing does.

    `here` tells what the person's clock shows at an instant, for clients that send one. Raises `InvalidRequest` with a
    sentence for what cannot be read.
    """
    before, after = _filled(_shown_in(shown), here), _filled(_sent(payload), here)
    if not after.title:
        raise InvalidRequest(f"A task needs a title. {_UNCHANGED}")
    wanted: Json = {}
    if after.title != before.title:
        wanted["title"] = after.title
    if (after.due, after.time) != (before.due, before.time):
        wanted["due"] = _due(before, after)
    if after.priority != before.priority:
        wanted["priority"] = after.priority
    if {*map(str.casefold, after.labels)} != {*map(str.casefold, before.labels)}:
        # An empty list would leave them as they are.
        wanted |= {"labels": [*after.labels]} if after.labels else {"remove_labels": [*before.labels]}
    return wanted


def _field(words: str, name: str, kind: str, **more: Any) -> Json:
    field = f"{_FIELD}.{name}"
    label = {"type": "Label", "value": words, "fieldName": field, "size": "sm"}
    return {"type": "Col", "gap": 1, "flex": 1, "children": [label, {"type": kind, "name": field, **more}]}


def _button(label: str, action: str, task: Task, *, color: str) -> Json:
    return {
        "type": "Button",
        "label": label,
        "size": "sm",
        "variant": "ghost",
        "color": color,
        "onClickAction": _action(action, task),
    }


def _action(kind: str, task: Task) -> Json:
    return {"type": kind, "payload": {"task_id": task.id}}


def _shown_in(component: Json) -> dict[str, Any]:
    """The fields of a form by their names, as they were filled when it was drawn."""
    if str(component.get("name", "")).startswith(f"{_FIELD}."):
        return {component["name"].removeprefix(f"{_FIELD}."): component.get("defaultValue")}
    return {name: value for child in component.get("children", ()) for name, value in _shown_in(child).items()}


def _sent(payload: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a form that was submitted; a client may take the dot in their names for one inside the other."""
    nested = payload.get(_FIELD)
    fields: dict[str, Any] = dict(nested) if isinstance(nested, dict) else {}
    return fields | {
        name.removeprefix(f"{_FIELD}."): value for name, value in payload.items() if name.startswith(f"{_FIELD}.")
    }


def _filled(fields: Mapping[str, Any], here: WallTime) -> _Filled:
    texts = {name: _text(fields.get(name)) for name in _Filled._fields}
    if texts["priority"] not in ("", *_PRIORITIES):
        raise InvalidRequest(f"The priority must be high, medium, low or none. {_UNCHANGED}")
    labels = [label.strip().lstrip("#").strip() for label in texts["labels"].split(",")]
    return _Filled(
        title=texts["title"],
        due=_day(texts["due"], here),
        time=_clock(texts["time"]),
        priority=texts["priority"] or _NO_PRIORITY,
        labels=tuple(label for label in labels if label),
    )


def _text(value: Any) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise InvalidRequest(f"A field of the form is not text. {_UNCHANGED}")
    return value.strip()


def _day(text: str, here: WallTime) -> str:
    if not text:
        return ""
    try:
        moment = datetime.fromisoformat(text)
        return str((here(moment) if moment.tzinfo else moment).date())
    except (ValueError, OverflowError):
        raise InvalidRequest(f"I don't recognise this date. Write it like 2026-11-27. {_UNCHANGED}") from None


def _clock(text: str) -> str:
    if not text:
        return ""
    if not (found := _TIME.fullmatch(text)):
        raise InvalidRequest(f"I don't recognise this time. Write it like 15:00. {_UNCHANGED}")
    hour, minute = found.groups()
    return f"{int(hour):02}:{minute}"


def _due(before: _Filled, after: _Filled) -> str:
    """As update_task reads it: a time that was left standing goes with its day."""
    if after.due:
        return f"{after.due} {after.time or 'all day'}"
    if after.time and after.time != before.time:
        raise InvalidRequest(f"A task with a time needs a date, too. {_UNCHANGED}")
    return "none"
