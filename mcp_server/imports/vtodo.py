"""Reads the to-dos of an iCalendar file (RFC 5545), its components VTODO."""

import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from datetime import time as clock_time

from icalendar.prop import vDDDTypes

from common.tool_server.errors import to_printable
from mcp_server.imports.field_table import LOST, Field, FieldTable
from mcp_server.imports.file_tasks import FileTask, FileTasks, FileUnread, NoTask, UnreadLine, UnreadPart
from mcp_server.imports.values import check_moment, convert_due, read_reminder, read_repeat, render_due
from mcp_server.tasks.zones import Now

_START = re.compile(r"\s{0,9}BEGIN:VCALENDAR\b", re.IGNORECASE)
_PARAMETER = r';[A-Z0-9-]+=(?:"[^"]*"|[^";:,]*)(?:,(?:"[^"]*"|[^";:,]*))*'
_LINE = re.compile(rf"(?P<name>[A-Z0-9-]+)(?P<parameters>(?:{_PARAMETER})*):(?P<value>.*)", re.IGNORECASE | re.DOTALL)
_ZONE = re.compile(r';TZID="?([^";:,]*)"?', re.IGNORECASE)
_ESCAPED = re.compile(r"\\([\\;,nN])")
_CATEGORY = re.compile(r"(?:\\.|[^,\\])+")
_TASK, _ALARM = "VTODO", "VALARM"
_NO_CONTENT = ("VCALENDAR", "VTIMEZONE", "STANDARD", "DAYLIGHT")
_MAX_VALUE = 100_000  # characters; the longest description has 4,000


@dataclass(frozen=True)
class _Property:
    value: str
    parameters: str = ""

    @property
    def zone(self) -> str | None:
        found = _ZONE.search(self.parameters)
        return found[1] if found else None


@dataclass
class _Component:
    location: str
    properties: dict[str, list[_Property]] = field(default_factory=dict[str, list[_Property]])

    def get(self, name: str) -> _Property | None:
        return self.properties.get(name, [None])[0]

    def read_text(self, name: str) -> str:
        found = self.get(name)
        return _unescape(found.value).strip() if found else ""

    def read_word(self, name: str) -> str:
        return self.read_text(name).upper()

    @property
    def present(self) -> list[str]:
        return [
            name
            for name, values in self.properties.items()
            if not name.startswith("X-") and any(value.value.strip() for value in values)
        ]


def is_icalendar(text: str) -> bool:
    return _START.match(text[:200]) is not None


def parse(text: str, now: Now) -> FileTasks:
    if not is_icalendar(text):
        raise FileUnread("The file is not an iCalendar file. It must start with BEGIN:VCALENDAR.")
    others: list[NoTask] = []
    has_tasks = False
    for part in _read_components(text):
        if isinstance(part, NoTask):
            others.append(part)
            continue
        has_tasks = True
        yield _try_task(part, now) if isinstance(part, _Component) else part
    if others and not has_tasks:
        raise FileUnread(
            "The calendar has no to-dos (VTODO), but only events or notes. Export a list of tasks instead."
        )
    yield from others


def _try_task(component: _Component, now: Now) -> FileTask | UnreadLine:
    identity: tuple[object, ...] = ("icalendar", component.read_text("UID"), component.read_text("RECURRENCE-ID"))
    if not component.read_text("UID"):
        due = component.get("DUE")
        identity = (*identity, component.read_text("SUMMARY"), due and due.value)
    try:
        return _TABLE.create_task(component.location, identity, component, now, present=component.present)
    except UnreadPart as problem:
        return UnreadLine(component.location, str(problem))


def _read_components(text: str) -> Iterator[_Component | UnreadLine | NoTask]:
    """Yields the to-dos; what is within one counts as its property, and other components are not read."""
    task: _Component | None = None
    inner: list[str] = []
    broken: UnreadLine | None = None
    for number, line in _unfold(text):
        match = _LINE.fullmatch(line)
        name, value = (match["name"].upper(), match["value"].strip()) if match else ("", "")
        kind = value.upper()
        if task is None:
            if name == "BEGIN" and kind == _TASK:
                task, broken = _Component(f"line {number}"), None
            elif name == "BEGIN" and kind not in _NO_CONTENT and kind != _ALARM:
                yield NoTask(kind)
        elif name == "END" and kind == _TASK:
            yield broken or task
            task, inner = None, []
        elif name == "BEGIN" and kind == _TASK:
            yield UnreadLine(task.location, "The to-do has no END:VTODO. Add it.")
            task, inner, broken = _Component(f"line {number}"), [], None
        elif name == "BEGIN":
            inner.append(kind)
            task.properties.setdefault(kind, []).append(_Property(kind))
        elif name == "END":
            inner = inner[:-1]
        elif match and (not inner or (name, inner) == ("TRIGGER", [_ALARM])):
            task.properties.setdefault(name, []).append(_Property(match["value"], match["parameters"]))
        elif line.strip() and not inner:
            broken = broken or UnreadLine(
                f"line {number}", f'"{to_printable(line[:40])}" is not a line of a calendar. Correct it.'
            )
    if task is not None:
        yield UnreadLine(task.location, "The file ends before END:VTODO. Export it again.")


def _unfold(text: str) -> Iterator[tuple[int, str]]:
    """Yields the content lines with their numbers; a line that begins with a space continues the one before."""
    parts: list[str] = []
    first, length = 1, 0
    for number, line in enumerate(re.split("\r\n|\n|\r", text), start=1):
        if line[:1] in (" ", "\t") and parts:
            length += len(line)
            if length <= _MAX_VALUE:  # of a longer one, only the name is read
                parts.append(line[1:])
            continue
        if parts:
            yield first, "".join(parts)
        parts, first, length = [line], number, len(line)
    yield first, "".join(parts)


def _unescape(value: str) -> str:
    return _ESCAPED.sub(lambda match: "\n" if match[1] in "nN" else match[1], value)


def _read_moment(component: _Component, name: str) -> date | timedelta | None:
    """Returns a day, a local time, an instant or a length of time."""
    found = component.get(name)
    if found is None or not found.value.strip():
        return None
    text = found.value.strip()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of time zones with the prefix of a program, whose name is taken
            moment = vDDDTypes.from_ical(text, found.zone)
    except (ValueError, OverflowError, OSError):  # the last one for a zone such as "Europe", which is a directory
        moment = None
    if not isinstance(moment, date | timedelta):
        raise UnreadPart(f'{name} is "{to_printable(text[:40])}". Write it like 20261127T140000Z or 20261127.')
    if isinstance(moment, datetime):
        if found.zone and moment.tzinfo is None:
            raise UnreadPart(
                f'The time zone "{to_printable(found.zone)}" of {name} is not known. Write 20261127T140000Z, in UTC.'
            )
        return check_moment(moment, text)
    return moment


def _read_date(component: _Component, name: str, now: Now) -> date | None:
    moment = _read_moment(component, name)
    if isinstance(moment, timedelta):
        raise UnreadPart(f"{name} is a length of time. Write it like 20261127T140000Z or 20261127.")
    return convert_due(moment, now) if moment else None


def _find_due(component: _Component, now: Now) -> date | None:
    """Returns a day, or a time in the user's zone. A to-do that only begins at a time is due then."""
    if due := _read_date(component, "DUE", now):
        return due
    start, length = _read_date(component, "DTSTART", now), _read_moment(component, "DURATION")
    if start is None or not isinstance(length, timedelta):
        return start
    try:
        return start + length
    except OverflowError:
        raise UnreadPart("DURATION is too long. Write a shorter one.") from None


def _check_start(component: _Component, now: Now) -> object:
    start = _read_date(component, "DTSTART", now)
    return LOST if start and start != _find_due(component, now) else None


def _read_rule(component: _Component, now: Now) -> object:
    found = component.get("RRULE")
    return read_repeat(found.value.strip(), _find_due(component, now), now.zone) if found else None


def _check_rules(component: _Component, now: Now) -> object:
    return LOST if len(component.properties.get("RRULE", [])) > 1 else None


def _read_remind(component: _Component, now: Now) -> object:
    """Returns LOST also for several alarms, and for one that counts from the start of a to-do that is due later."""
    triggers = component.properties.get("TRIGGER", [])
    if not triggers:
        return None
    [first, *others] = triggers
    counts_from_due = "RELATED=END" in first.parameters.upper() or _check_start(component, now) is None
    return LOST if others or not counts_from_due else read_reminder(first.value.strip(), _find_due(component, now))


def _read_description(component: _Component, now: Now) -> str:
    """Appends the place and the address, which have no field."""
    names = {"LOCATION": "Location: ", "URL": ""}
    others = [prefix + text for name, prefix in names.items() if (text := component.read_text(name))]
    return "\n".join(part for part in (component.read_text("DESCRIPTION"), *others) if part)


def _read_labels(component: _Component, now: Now) -> list[str]:
    values = [found.value for found in component.properties.get("CATEGORIES", [])]
    labels = [_unescape(label).strip() for value in values for label in _CATEGORY.findall(value)]
    return [label for label in labels if label]


def _read_priority(component: _Component, now: Now) -> str | None:
    """RFC 5545, section 3.8.1.9: 1 to 4 are high, 5 is medium, 6 to 9 are low, and 0 is none."""
    text = component.read_text("PRIORITY") or "0"
    if not re.fullmatch(r"\d", text, re.ASCII):
        raise UnreadPart(f'PRIORITY is "{to_printable(text[:40])}". Write 0 to 9.')
    return {"0": None, "5": "medium"}.get(text, "high" if text < "5" else "low")


def _is_completed(component: _Component) -> bool:
    return (
        component.read_word("STATUS") in ("COMPLETED", "CANCELLED")
        or component.read_text("COMPLETED") != ""
        or component.read_text("PERCENT-COMPLETE") == "100"
    )


def _check_status(component: _Component, now: Now) -> object:
    return LOST if component.read_word("STATUS") not in ("", "NEEDS-ACTION", "COMPLETED") else None


def _check_progress(component: _Component, now: Now) -> object:
    return LOST if component.read_text("PERCENT-COMPLETE") not in ("", "0", "100") else None


def _read_instant(component: _Component, name: str, now: Now) -> object:
    """Some programs write 1970 for a moment that they do not know."""
    try:
        moment = _read_moment(component, name)
    except UnreadPart:
        return LOST
    if moment is None or isinstance(moment, timedelta):
        return moment and LOST
    local = moment if isinstance(moment, datetime) else datetime.combine(moment, clock_time(12))
    return local if local.tzinfo else local.replace(tzinfo=now.zone)


_TABLE = FieldTable[_Component](
    fields=(
        Field("title", ("SUMMARY",), lambda component, now: " ".join(component.read_text("SUMMARY").split())),
        Field("description", ("DESCRIPTION", "LOCATION", "URL"), _read_description),
        Field("labels", ("CATEGORIES",), _read_labels),
        Field("due", ("DUE", "DURATION"), lambda component, now: render_due(_find_due(component, now))),
        Field(None, ("DTSTART",), _check_start),
        Field("repeat", ("RRULE",), _read_rule),
        Field(None, ("RRULE",), _check_rules),
        Field("remind", (_ALARM, "TRIGGER"), _read_remind),
        Field("priority", ("PRIORITY",), _read_priority),
        Field("completed", ("STATUS", "COMPLETED"), lambda component, now: _is_completed(component)),
        Field(None, ("STATUS",), _check_status),
        Field(None, ("PERCENT-COMPLETE",), _check_progress),
        Field("created_at", ("CREATED",), lambda component, now: _read_instant(component, "CREATED", now)),
        Field("updated_at", ("LAST-MODIFIED",), lambda component, now: _read_instant(component, "LAST-MODIFIED", now)),
        Field("completed_at", ("COMPLETED",), lambda component, now: _read_instant(component, "COMPLETED", now)),
    ),
    ignored=frozenset(("UID", "DTSTAMP", "SEQUENCE", "CLASS")),
)
