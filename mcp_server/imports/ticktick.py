"""Reads TickTick's backup, a CSV of all lists with a few lines above its header.

Lists become labels, and the items of a checklist become a Markdown checklist in the description.
"""

import re
from datetime import UTC, date, datetime

from common.clock import find_zone
from common.tool_server.errors import to_printable
from mcp_server.imports.csv_rows import Header, Row, find_header, read_rows
from mcp_server.imports.field_table import LOST, Field, FieldTable
from mcp_server.imports.file_tasks import FileTask, FileTasks, FileUnread, UnreadLine, UnreadPart
from mcp_server.imports.values import check_moment, convert_due, is_label, read_reminder, read_repeat, render_due
from mcp_server.tasks.zones import Now

_SIGNS = ("List Name", "Title", "Content", "Due Date", "Priority", "Status")
_MAX_RECORDS_ABOVE = 10
_PRIORITIES = {"5": "high", "3": "medium", "1": "low", "0": None, "": None}
_OPEN, _COMPLETED, _ABANDONED = ("0", ""), ("1", "2"), "-1"
_CHECKLIST_ITEMS = {"▫": "- [ ] ", "▪": "- [x] "}
_CHECKLIST_ITEM = re.compile("^([▫▪]) ?", re.MULTILINE)
_DEFAULT_LIST = "inbox"


def find_ticktick_header(text: str) -> Header | None:
    return find_header(text, _SIGNS, records=_MAX_RECORDS_ABOVE)


def parse(text: str, now: Now) -> FileTasks:
    header = find_ticktick_header(text)
    if header is None:
        raise FileUnread(f"The file is not a TickTick CSV. It needs a line with {', '.join(_SIGNS)}.")
    for row in read_rows(text, header):
        yield row if isinstance(row, UnreadLine) else _try_task(row, now)


def _try_task(row: Row, now: Now) -> FileTask | UnreadLine:
    identity = ("ticktick", row["Created Time"], row["Title"])
    if not row["Created Time"]:
        identity = (*identity, row["Content"], row["Due Date"])
    try:
        return _TABLE.create_task(row.location, identity, row, now, present=row.present)
    except UnreadPart as problem:
        return UnreadLine(row.location, str(problem))


def _read_description(row: Row, now: Now) -> str:
    if row["Is Check list"] != "Y":
        return row["Content"]
    return _CHECKLIST_ITEM.sub(lambda item: _CHECKLIST_ITEMS[item[1]], row["Content"])


def _read_labels(row: Row, now: Now) -> list[str]:
    tags = [tag.strip() for tag in row["Tags"].split(",") if tag.strip()]
    name = row["List Name"]
    return [*tags, name] if _is_named_list(name) and is_label(name) else tags


def _check_list_name(row: Row, now: Now) -> object:
    return LOST if _is_named_list(row["List Name"]) and not is_label(row["List Name"]) else None


def _is_named_list(name: str) -> bool:
    return name != "" and name.lower() != _DEFAULT_LIST


def _read_priority(row: Row, now: Now) -> str | None:
    if row["Priority"] not in _PRIORITIES:
        raise UnreadPart(f'Priority is "{to_printable(row["Priority"])}". Write 0, 1, 3 or 5 (the highest).')
    return _PRIORITIES[row["Priority"]]


def _read_completed(row: Row, now: Now) -> bool:
    status = row["Status"]
    if status not in (*_OPEN, *_COMPLETED, _ABANDONED):
        raise UnreadPart(f'Status is "{to_printable(status)}". Write 0 (normal), 1 or 2 (completed).')
    return status not in _OPEN


def _check_kind(row: Row, now: Now) -> object:
    return LOST if row["Kind"] not in ("", "TEXT", "CHECKLIST") else None


def _check_status(row: Row, now: Now) -> object:
    return LOST if row["Status"] == _ABANDONED else None


def _find_due(row: Row, now: Now) -> date | None:
    """Returns a day, or a time in the user's zone. A task that only begins at a time is due then."""
    name = "Due Date" if row["Due Date"] else "Start Date"
    return _read_date(row, name, now) if row[name] else None


def _read_date(row: Row, name: str, now: Now) -> date:
    moment = _read_moment(row, name)
    zone = find_zone(row["Timezone"]) or now.zone
    local = moment.astimezone(zone).replace(tzinfo=None) if moment.tzinfo else moment
    if row["Is All Day"].lower() == "true":
        return local.date()
    is_floating = moment.tzinfo is None or row["Is Floating"].lower() == "true"
    return local if is_floating else convert_due(moment, now)


def _check_start(row: Row, now: Now) -> object:
    has_both = row["Start Date"] and row["Due Date"]
    return LOST if has_both and _read_date(row, "Start Date", now) != _find_due(row, now) else None


def _read_rule(row: Row, now: Now) -> object:
    return read_repeat(row["Repeat"], _find_due(row, now), now.zone)


def _read_remind(row: Row, now: Now) -> object:
    if not row["Reminder"]:
        return None
    return read_reminder(row["Reminder"].removeprefix("TRIGGER:"), _find_due(row, now))


def _read_moment(row: Row, name: str) -> datetime:
    try:
        moment = datetime.fromisoformat(row[name])
    except ValueError:
        raise UnreadPart(f'{name} is "{to_printable(row[name])}". Write it like 2026-11-27T14:00:00+0000.') from None
    return check_moment(moment, row[name])


def _read_instant(row: Row, name: str) -> object:
    try:
        moment = _read_moment(row, name) if row[name] else None
    except UnreadPart:
        return LOST
    return moment.replace(tzinfo=UTC) if moment and moment.tzinfo is None else moment


_TABLE = FieldTable(
    fields=(
        Field("title", ("Title",), lambda row, now: " ".join(row["Title"].split())),
        Field("description", ("Content", "Is Check list"), _read_description),
        Field("labels", ("Tags", "List Name"), _read_labels),
        Field(None, ("List Name",), _check_list_name),
        Field(
            "due",
            ("Due Date", "Timezone", "Is All Day", "Is Floating"),
            lambda row, now: render_due(_find_due(row, now)),
        ),
        Field(None, ("Start Date",), _check_start),
        Field("repeat", ("Repeat",), _read_rule),
        Field("remind", ("Reminder",), _read_remind),
        Field("priority", ("Priority",), _read_priority),
        Field("completed", ("Status",), _read_completed),
        Field(None, ("Status",), _check_status),
        Field(None, ("Kind",), _check_kind),
        Field("created_at", ("Created Time",), lambda row, now: _read_instant(row, "Created Time")),
        Field("completed_at", ("Completed Time",), lambda row, now: _read_instant(row, "Completed Time")),
    ),
    ignored=frozenset(("Order", "Column Order", "View Mode", "taskId", "projectKind")),
)
