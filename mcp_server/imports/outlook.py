"""Reads the tasks of Microsoft To Do from the CSV into which Outlook exports them; To Do itself exports nothing.

Outlook writes dates as Windows does, so their order is found from all dates of the file.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime, time

from common.tool_server.errors import to_printable
from mcp_server.imports.csv_rows import Header, Row, find_header, read_rows
from mcp_server.imports.field_table import LOST, Field, FieldTable
from mcp_server.imports.file_tasks import FileTask, FileTasks, FileUnread, UnreadLine, UnreadPart
from mcp_server.imports.values import check_moment, render_due
from mcp_server.tasks.zones import Now

_SIGNS = ("Subject", "Due Date", "Date Completed", "Status")
_DATES = ("Start Date", "Due Date", "Date Completed", "Reminder Date")
_DATE = re.compile(r"(\d{1,4})([-./])(\d{1,2})\2(\d{1,4})(?: 0?0?:?00(?::00)?)?", re.ASCII)
_PRIORITIES = {"high": "high", "low": "low", "normal": None, "": None}
_OPEN, _COMPLETED = ("", "not started"), "completed"
_NO_YEAR = 4501  # of the date that stands for none
# What Outlook writes where nothing was entered.
_EMPTY = frozenset(("", "false", "normal", "none", "0", "0%", "0 hours", "0 minutes"))


@dataclass(frozen=True)
class _OutlookRow(Row):
    is_day_first: bool | None = None
    """None if each date of the file could be read in both ways."""


def find_outlook_header(text: str) -> Header | None:
    return find_header(text, _SIGNS)


def parse(text: str, now: Now) -> FileTasks:
    header = find_outlook_header(text)
    if header is None:
        raise FileUnread(f"The file is not a CSV of Outlook tasks. Its first line needs {', '.join(_SIGNS)}.")
    is_day_first = _find_order(row for row in read_rows(text, header) if isinstance(row, Row))
    for row in read_rows(text, header):
        if isinstance(row, UnreadLine):
            yield row
        else:
            yield _try_task(_OutlookRow(row.location, row.cells, is_day_first), now)


def _try_task(row: _OutlookRow, now: Now) -> FileTask | UnreadLine:
    identity = ("microsoft-todo", row["Subject"], row["Notes"], row["Due Date"])
    present = [name for name in row.present if row[name].lower() not in _EMPTY]
    try:
        return _TABLE.create_task(row.location, identity, row, now, present=present)
    except UnreadPart as problem:
        return UnreadLine(row.location, str(problem))


def _find_order(rows: Iterable[Row]) -> bool | None:
    """Returns whether the day comes before the month; None if no date says it, or the dates contradict each other."""
    found: set[bool] = set()
    for row in rows:
        for match in map(_DATE.fullmatch, (row[name] for name in _DATES)):
            if match and len(match[1]) <= 2:
                first, second = int(match[1]), int(match[3])
                if match[2] == "." or first > 12 or second > 12:
                    found.add(match[2] == "." or first > 12)
    return found.pop() if len(found) == 1 else None


def _read_date(row: _OutlookRow, name: str) -> date | None:
    text = row[name]
    if not text or text.lower() == "none":
        return None
    match = _DATE.fullmatch(text)
    if match is None:
        raise UnreadPart(f'{name} is "{to_printable(text)}". Write it like 2026-11-27.')
    first, second, third = (int(match[number]) for number in (1, 3, 4))
    if len(match[1]) == 4:
        year, month, day = first, second, third
    elif first != second and row.is_day_first is None:
        raise UnreadPart(f"{name} is {text}, which may mean two days. Write it like 2026-11-27.")
    else:
        day, month, year = (first, second, third) if row.is_day_first else (second, first, third)
    if year == _NO_YEAR:
        return None
    try:
        found = date(year, month, day)
    except ValueError:
        raise UnreadPart(f"{name} is {text}, which is not in the calendar. Write it like 2026-11-27.") from None
    return check_moment(datetime.combine(found, time()), text).date()


def _find_due(row: _OutlookRow) -> date | None:
    """A task that only begins on a day is due then."""
    return _read_date(row, "Due Date") or _read_date(row, "Start Date")


def _check_start(row: _OutlookRow, now: Now) -> object:
    start = _read_date(row, "Start Date")
    return LOST if start and start != _find_due(row) else None


def _read_priority(row: _OutlookRow, now: Now) -> str | None:
    if (priority := row["Priority"].lower()) not in _PRIORITIES:
        raise UnreadPart(f'Priority is "{to_printable(priority)}". Write High, Normal or Low.')
    return _PRIORITIES[priority]


def _read_labels(row: _OutlookRow, now: Now) -> list[str]:
    return [label.strip() for label in re.split("[;,]", row["Categories"]) if label.strip()]


def _is_completed(row: _OutlookRow) -> bool:
    is_marked = row["Status"].lower() == _COMPLETED or row["Complete"].lower() == "true"
    return is_marked or _read_date(row, "Date Completed") is not None


def _check_status(row: _OutlookRow, now: Now) -> object:
    return LOST if row["Status"].lower() not in (*_OPEN, _COMPLETED) else None


def _check_progress(row: _OutlookRow, now: Now) -> object:
    return LOST if not _is_completed(row) and row["% Complete"].lower() not in _EMPTY else None


def _check_reminder(row: _OutlookRow, now: Now) -> object:
    return LOST if row["Reminder On/Off"].lower() not in _EMPTY else None


def _read_completion(row: _OutlookRow, now: Now) -> datetime | None:
    """Outlook writes a day, of which noon is taken."""
    day = _read_date(row, "Date Completed")
    return datetime.combine(day, time(12), now.zone) if day else None


_TABLE = FieldTable[_OutlookRow](
    fields=(
        Field("title", ("Subject",), lambda row, now: " ".join(row["Subject"].split())),
        Field("description", ("Notes",), lambda row, now: row["Notes"]),
        Field("labels", ("Categories",), _read_labels),
        Field("due", ("Due Date",), lambda row, now: render_due(_find_due(row))),
        Field(None, ("Start Date",), _check_start),
        Field(None, ("Reminder On/Off", "Reminder Date", "Reminder Time"), _check_reminder),
        Field("priority", ("Priority",), _read_priority),
        Field("completed", ("Status", "Complete"), lambda row, now: _is_completed(row)),
        Field(None, ("Status",), _check_status),
        Field(None, ("% Complete",), _check_progress),
        Field("completed_at", ("Date Completed",), _read_completion),
    ),
)
