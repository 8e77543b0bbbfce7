"""Applies the arguments of a call to a task."""

import unicodedata
from collections.abc import Mapping
from typing import Any

from common import recurrence
from common.task_words import REMIND_NEVER
from mcp_server.arguments import DEFAULT, NONE
from mcp_server.errors import (
    LabelInvalid,
    NotRepeating,
    ReminderNeedsTime,
    RepeatEnded,
    RepeatNeedsDue,
    TooManyLabels,
)
from mcp_server.tasks import dates
from mcp_server.tasks.dates import Due
from mcp_server.tasks.fields import Task, TaskPatch, parse_value
from mcp_server.tasks.zones import Now

MAX_LABELS = 10
_MAX_LABEL_LENGTH = 40  # characters
_ALL_LABELS = "*"  # in remove_labels; models send an empty list of labels for "not given"
_LABEL_ARGUMENTS = ("labels", "add_labels", "remove_labels")
_OTHER_ARGUMENTS = (*_LABEL_ARGUMENTS, "due", "repeat", "status")  # all but those whose value is stored as it is


def apply_patch(task: Task, patch: TaskPatch, now: Now) -> Task:
    """Returns the task with the new fields, except its status."""
    changed = {name: parse_value(name, value) for name, value in patch.items() if name not in _OTHER_ARGUMENTS}
    if not patch.keys().isdisjoint(_LABEL_ARGUMENTS):
        changed["labels"] = _merge_labels(task, patch)
    return drop_reminder_without_time(_apply_dates(task.model_copy(update=changed), patch, now), patch)


def _apply_dates(task: Task, patch: TaskPatch, now: Now) -> Task:
    due, rule = task.due, task.repeat
    if "due" in patch:
        new_due = dates.read_due(patch["due"], now=now.local, zone=now.zone, current=due)
        if new_due == "next":
            due, rule = _skip_occurrence(task, now)
        else:
            due = new_due
    if "repeat" in patch:
        rule = _parse_rule(patch["repeat"], due, now)
    if rule is not None and due is None:
        raise RepeatNeedsDue
    series = (task.series or task.id) if rule else task.series
    day, time = (due.day, due.time) if due else (None, None)
    return task.model_copy(update={"due_on": day, "due_time": time, "repeat": rule, "series": series})


def drop_reminder_without_time(task: Task, patch: Mapping[str, Any]) -> Task:
    """Returns a task without minutes before a time that it does not have; raises an error if the patch gives them."""
    if task.due_time is not None or task.remind in (None, REMIND_NEVER):
        return task
    if patch.get("remind") not in (None, NONE, DEFAULT):
        raise ReminderNeedsTime
    return task.model_copy(update={"remind": None})


def _parse_rule(text: str, due: Due | None, now: Now) -> str | None:
    if text.strip().lower() == "none":
        return None
    if due is None:
        raise RepeatNeedsDue
    return str(recurrence.read_rule(text, due.day, due.time, now.zone))


def _skip_occurrence(task: Task, now: Now) -> tuple[Due, str]:
    if task.repeat is None or task.due is None:
        raise NotRepeating(task=f"Task {task.id}" if task.id else "A new task")
    rule = recurrence.parse_rule(task.repeat)
    day = recurrence.find_next_date(rule, due=task.due.day, today=now.local.date())
    if day is None:
        raise RepeatEnded(task_id=task.id)
    return Due(day, task.due.time), str(recurrence.get_next_rule(rule))


def create_next_task(task: Task, now: Now) -> Task | None:
    """Returns the task that follows a repeating one when it is completed; it has no id of its own yet."""
    if task.repeat is None or task.due_on is None:
        return None
    rule = recurrence.parse_rule(task.repeat)
    day = recurrence.find_next_date(rule, due=task.due_on, today=now.local.date())
    if day is None:
        return None
    fresh = {"created_at": now.instant, "updated_at": now.instant, "completed_at": None, "status": "pending"}
    return task.model_copy(update={"due_on": day, "repeat": str(recurrence.get_next_rule(rule)), **fresh})


def _merge_labels(task: Task, patch: TaskPatch) -> tuple[str, ...]:
    removed = {*map(normalize_label, patch.get("remove_labels", ()))}
    labels = {*map(normalize_label, patch["labels"])} if "labels" in patch else {*task.labels}
    if _ALL_LABELS in removed:
        labels = set[str]()
    labels = labels.union(map(normalize_label, patch.get("add_labels", ()))).difference(removed)
    if len(labels) > MAX_LABELS:
        raise TooManyLabels(most=MAX_LABELS)
    return tuple(sorted(labels))


def normalize_label(text: str) -> str:
    folded = unicodedata.normalize("NFC", unicodedata.normalize("NFD", text).casefold())
    label = " ".join(" ".join(folded.split()).lstrip("#@ ").split())
    if not 1 <= len(label) <= _MAX_LABEL_LENGTH:
        raise LabelInvalid(max_length=_MAX_LABEL_LENGTH)
    return label
