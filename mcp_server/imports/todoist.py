"""Reads Todoist's CSV of a project, which has a task, a section or a note in each row.

Notes become the description of the task above them, sections become labels.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime

import english
from common.tool_server.errors import to_printable
from mcp_server.errors import LabelInvalid
from mcp_server.imports.csv_rows import Header, Row, find_header, read_rows
from mcp_server.imports.field_table import LOST, Field, FieldTable
from mcp_server.imports.file_tasks import FileTask, FileTasks, FileUnread, UnreadLine, UnreadPart, split_labels
from mcp_server.tasks.patches import normalize_label
from mcp_server.tasks.zones import Now

_SIGNS = ("TYPE", "CONTENT")
_PRIORITIES = {"1": "high", "2": "medium", "3": "low", "4": None, "": None}
_ISO_START = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_MAX_DATE_LENGTH = 120  # characters
_AMBIGUOUS_HOUR = re.compile(r"\bat [1-6](?![\d:.])(?! ?[ap]m)", re.IGNORECASE)
_REPEATS = re.compile(r"every|each|\w+ly\b", re.IGNORECASE)
# Phrases that mean something else to Todoist than to our grammar.
_REPLACEMENTS = (
    (re.compile(r"\btod\b"), "today"),
    (re.compile(r"\btom\b"), "tomorrow"),
    (re.compile(r"\bevery weekend\b"), "every saturday"),
    (re.compile(r"\bevery afternoon\b"), "every day at 12:00"),
    (re.compile(r"\bevery night\b"), "every day at 22:00"),
    (re.compile(r"\bevery! (?!\d|other|day|week|month|quarter|year)"), "every "),
)
_IDENTITY = ("CONTENT", "DESCRIPTION", "DATE", "DEADLINE")
_OTHER_NAMES = {"DUE_DATE": "DATE", "DUE_DATE_LANG": "DATE_LANG"}


@dataclass(frozen=True)
class _TaskRow(Row):
    section: str | None
    due: str | None
    repeat: str | None


def find_todoist_header(text: str) -> Header | None:
    return find_header(text, _SIGNS, normalize=_normalize_name)


def _normalize_name(name: str) -> str:
    return _OTHER_NAMES.get(name.upper(), name.upper())


def parse(text: str, now: Now) -> FileTasks:
    header = find_todoist_header(text)
    if header is None:
        raise FileUnread("The file is not a Todoist CSV. Its first line must have the columns TYPE and CONTENT.")
    return _read_tasks(read_rows(text, header), now)


def _read_tasks(rows: Iterator[Row | UnreadLine], now: Now) -> FileTasks:
    previous: FileTask | UnreadLine | None = None
    notes: list[str] = []
    section: str | None = None
    for row in rows:
        if isinstance(row, UnreadLine):
            yield row
            continue
        match row["TYPE"]:
            case "task" | "section" as kind:
                yield from _add_notes(previous, notes)
                previous, notes = (_try_task(row, section, now) if kind == "task" else None), []
                if kind == "section":
                    section = _read_section(row)
                    if section is None:
                        yield UnreadLine(
                            row.location, "The section's name cannot be a label, so its tasks do not get it."
                        )
            case "note" if previous is None:
                yield UnreadLine(row.location, "The note has no task above it. Move it below one.")
            case "note":
                notes.append(row["CONTENT"])
            case "meta":
                pass
            case other:
                yield UnreadLine(row.location, f'TYPE is "{to_printable(other)}". Write task, section or note.')
    yield from _add_notes(previous, notes)


def _add_notes(previous: FileTask | UnreadLine | None, notes: list[str]) -> FileTasks:
    if isinstance(previous, FileTask):
        description = "\n".join(part for part in (str(previous.arguments["description"]), *notes) if part)
        yield replace(previous, arguments={**previous.arguments, "description": description})
    elif previous:
        yield previous


def _read_section(row: Row) -> str | None:
    try:
        return normalize_label(row["CONTENT"])
    except LabelInvalid:
        return None


def _try_task(row: Row, section: str | None, now: Now) -> FileTask | UnreadLine:
    try:
        return _read_task(row, section, now)
    except UnreadPart as problem:
        return UnreadLine(row.location, str(problem))


def _read_task(row: Row, section: str | None, now: Now) -> FileTask:
    # As the cells are written, so that the next version of a file has the same identities.
    identity = ("todoist", *(row.cells.get(name, "").strip() for name in _IDENTITY))
    labelled = _TaskRow(row.location, row.cells, section, *_read_when(row, now))
    return _TABLE.create_task(row.location, identity, labelled, now, present=row.present)


def _read_labels(row: _TaskRow, now: Now) -> tuple[str, ...]:
    labels = _split_content(row)[1]
    return (*labels, row.section) if row.section else labels


def _split_content(row: Row) -> tuple[str, tuple[str, ...]]:
    return split_labels(row["CONTENT"].split(" "), "@")


def _read_description(row: Row, now: Now) -> str:
    deadline = f"Deadline: {row['DEADLINE']}" if row["DEADLINE"] else ""
    return "\n".join(part for part in (row["DESCRIPTION"], deadline) if part)


def _read_priority(row: Row, now: Now) -> str | None:
    if row["PRIORITY"] not in _PRIORITIES:
        raise UnreadPart(f'PRIORITY is "{to_printable(row["PRIORITY"])}". Write 1 (the highest) to 4, or nothing.')
    return _PRIORITIES[row["PRIORITY"]]


def _check_indent(row: Row, now: Now) -> object:
    return LOST if row["INDENT"] not in ("", "1") else None


def _check_zone(row: Row, now: Now) -> object:
    """The times of a task in another zone are taken as local ones."""
    return LOST if row["DATE"] and row["TIMEZONE"] not in ("", now.zone.key) else None


def _read_when(row: Row, now: Now) -> tuple[str | None, str | None]:
    language = row["DATE_LANG"].lower()
    if not (language in ("", "en") or language.startswith("en_") or _ISO_START.match(row["DATE"]) or not row["DATE"]):
        raise UnreadPart(f"DATE is not in English, but in {to_printable(language)}. Write it like 2026-11-27.")
    return _read_date(row["DATE"], now.instant.astimezone(now.zone))


def _read_date(text: str, now: datetime) -> tuple[str | None, str | None]:
    """Returns `due` and `repeat` of `add_task`; raises `UnreadPart`, also for an ambiguous date.

    An ISO date is returned as it is, because `add_task` reads its offset.
    """
    words = " ".join(text.lower().split())
    if not words:
        return None, None
    for pattern, replacement in _REPLACEMENTS:
        words = pattern.sub(replacement, words)
    is_ambiguous = len(words) > _MAX_DATE_LENGTH or _AMBIGUOUS_HOUR.search(words)
    when = None if is_ambiguous else english.read_when(words, now, is_record=True)
    if when and not when.is_time_only and (when.repeat is None or _REPEATS.match(words)):
        return when.due, when.repeat
    if _ISO_START.match(words):
        return words, None
    raise UnreadPart(
        f'DATE "{to_printable(text)}" cannot be read. Write a day (2026-11-27), a day and a time (2026-11-27 15:00), '
        "or a repeat such as every monday at 9:00, every 2 weeks, every 27th, every! 3 months."
    )


_TABLE = FieldTable[_TaskRow](
    fields=(
        Field("title", ("CONTENT",), lambda row, now: _split_content(row)[0]),
        Field("description", ("DESCRIPTION", "DEADLINE"), _read_description),
        Field("labels", ("CONTENT",), _read_labels),
        Field("due", ("DATE", "DATE_LANG"), lambda row, now: row.due),
        Field("repeat", ("DATE", "DATE_LANG"), lambda row, now: row.repeat),
        Field(None, ("TIMEZONE",), _check_zone),
        Field("priority", ("PRIORITY",), _read_priority),
        Field(None, ("INDENT",), _check_indent),
    ),
    ignored=frozenset(("TYPE", "AUTHOR", "DEADLINE_LANG", "IS_COLLAPSED")),
)
