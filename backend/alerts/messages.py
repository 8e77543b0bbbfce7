"""What a notification says. Titles of tasks are read when it is sent, and stored nowhere."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from backend.alerts.channels.channel import Notification
from backend.alerts.outbox import MOST_TASKS, Alert, Work

_NAMED_TASKS = 5
_SCHEDULES = {
    "completed": "A scheduled run has completed",
    "nothing_changed": "A scheduled run has changed nothing",
    "failed": "A scheduled run has failed",
    "waiting": "A scheduled run waits for your approval",
    "skipped": "A scheduled run was skipped",
}
_OF_SCHEDULE = {
    "completed": "“{text}” is ready",
    "nothing_changed": "“{text}” has changed nothing",
    "failed": "“{text}” has failed",
    "waiting": "“{text}” waits for your approval",
    "skipped": "“{text}” was skipped",
}
_MAX_TEXT, _MAX_ANSWER = 60, 300  # characters
_OPEN = "Open the conversation to see it."
_OTHER_OUTCOME = "A scheduled run needs your attention"
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


@dataclass(frozen=True, slots=True)
class OpenTask:
    """A task that is still as it was when its alert was made."""

    id: int
    title: str
    due_on: date
    due_time: time | None


@dataclass(frozen=True, slots=True)
class ScheduledRun:
    """The conversation, status and answer of a run, and what its schedule does, if they still exist."""

    chat_id: str | None
    status: str | None
    text: str | None
    answer: str | None


def find_open_tasks(meant: Collection[Mapping[str, Any]], listed: Collection[Mapping[str, Any]]) -> list[OpenTask]:
    """Returns the tasks that are still pending with the due date of their alert; `listed` are tasks as they are now."""
    now = {task["id"]: task for task in listed if task["status"] == "pending" and not task.get("deleted")}
    return [
        OpenTask(each["id"], now[each["id"]]["title"], date.fromisoformat(each["due_on"]), read_time(each["due_time"]))
        for each in meant
        if each["due_on"] is not None and each["id"] in now and is_meant(each, now[each["id"]])
    ]


def is_meant(meant: Mapping[str, Any], task: Mapping[str, Any]) -> bool:
    """Whether a task has the due date that it had when its alert was made."""
    due = task["due"] or {"date": None, "time": None}
    at = read_time(meant["due_time"])
    return due["date"] == meant["due_on"] and due["time"] == (None if at is None else f"{at:%H:%M}")


def compose(
    work: Work, tasks: list[OpenTask], *, address: str, now: datetime, zone: ZoneInfo, run: ScheduledRun | None = None
) -> Notification | None:
    """Returns the message, without a proof; None if there is nothing left to say."""
    alert = work.alert
    runs = [each for each in (alert, *work.merged) if each.kind == "schedule"]
    title, body, url, task = "", "", f"{address}/today", None
    is_cut = len(alert.tasks) >= MOST_TASKS
    match alert.kind:
        case "test":
            title, body, url = "Test notification", "Notifications reach you here.", f"{address}/"
        case "schedule" if run is None or not _is_decided(alert, run):
            title, body = _describe_run(alert.outcome or "", run)
            url = f"{address}/c/{run.chat_id}" if run and run.chat_id else f"{address}/"
        case "task" if tasks:
            [first] = tasks
            title, body = first.title, _describe_due(first, alert, now, zone)
            url, task = f"{address}/t/{first.id}", first.id
        case "digest" if tasks:
            today = sum(each.due_on >= now.astimezone(zone).date() for each in tasks)
            title, body = _describe_digest(today, len(tasks) - today, is_cut=is_cut), _list_titles(tasks, is_cut=is_cut)
        case "several" if len(tasks) == 1:
            title, body, url = tasks[0].title, _describe_due(tasks[0], alert, now, zone), f"{address}/t/{tasks[0].id}"
        case "several" if tasks:
            title = f"{'At least ' if is_cut else ''}{_count(len(tasks), 'reminder')}"
            body = _list_titles(tasks, is_cut=is_cut)
            body += "\nThese notifications are late." if alert.late else ""
        case "held" if tasks or runs:
            number = _count(len(tasks) + len(runs), "notification")
            title = f"{'At least ' if is_cut else ''}{number} from your quiet hours"
            body = "\n".join(
                filter(
                    None,
                    [
                        *(_SCHEDULES.get(run.outcome or "", _OTHER_OUTCOME) for run in runs),
                        _list_titles(tasks, is_cut=is_cut),
                    ],
                )
            )
            if len(tasks) == 1 and not runs:
                url = f"{address}/t/{tasks[0].id}"
        case _:
            return None
    return Notification(
        key=alert.key,
        kind=alert.kind,
        title=title,
        body=body,
        url=url,
        task=task,
        proof=None,
        late=alert.late,
        actions=task is not None,
    )


def read_time(text: str | None) -> time | None:
    return None if text is None else time.fromisoformat(text)


def _is_decided(alert: Alert, run: ScheduledRun) -> bool:
    """Whether what an alert asks for was approved or rejected since."""
    return alert.outcome == "waiting" and run.status not in (None, "waiting")


def _describe_run(outcome: str, run: ScheduledRun | None) -> tuple[str, str]:
    """Returns the title and body; that of a result is the answer of the run."""
    if run is None or not run.text or outcome not in _OF_SCHEDULE:
        return _SCHEDULES.get(outcome, _OTHER_OUTCOME), _OPEN
    is_result = outcome == "completed" and run.answer
    return _OF_SCHEDULE[outcome].format(text=_shorten(run.text, _MAX_TEXT)), (
        _shorten(run.answer or "", _MAX_ANSWER) if is_result else _OPEN
    )


def _shorten(text: str, most: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[:most]}…"


def _describe_due(task: OpenTask, alert: Alert, now: datetime, zone: ZoneInfo) -> str:
    today = now.astimezone(zone).date()
    days = {today: "today", today + timedelta(days=1): "tomorrow", today - timedelta(days=1): "yesterday"}
    day = days.get(task.due_on) or f"on {_DAYS[task.due_on.weekday()]} {task.due_on}"
    clock = f" at {task.due_time:%H:%M}" if task.due_time is not None else ""
    late = " This notification is late." if alert.late else ""
    return f"Due {day}{clock}.{late}"


def _describe_digest(today: int, overdue: int, *, is_cut: bool) -> str:
    """Tasks of today come first, so what may be missing `is_cut` from those that are overdue, if there are any."""
    parts = [f"{_count(today, 'task')} for today"] if today else []
    parts += [f"{overdue} overdue" if today else f"{_count(overdue, 'task')} overdue"] if overdue else []
    if is_cut:
        parts[-1] = f"at least {parts[-1]}"
    text = ", ".join(parts)
    return text[:1].upper() + text[1:]


def _list_titles(tasks: list[OpenTask], *, is_cut: bool) -> str:
    lines = [task.title for task in tasks[:_NAMED_TASKS]]
    more = len(tasks) - len(lines)
    return "\n".join([*lines, "and more" if is_cut else f"and {more} more"] if more else lines)


def _count(number: int, name: str) -> str:
    return f"{number} {name}{'' if number == 1 else 's'}"
