"""Reads Todoist's CSV of a project, which has a task, a section or a note in each row.

Notes become the description of the task above them, sections become labels.
"""

import csv
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime

import english
from common.tool_server.errors import to_printable
from mcp_server.errors import LabelInvalid
from mcp_server.imports.file_tasks import FileTask, FileTasks, FileUnread, UnreadLine, UnreadPart, split_labels
from mcp_server.tasks.patches import normalize_label
from mcp_server.tasks.zones import Now

_HEADER = re.compile(r'\s{0,9}"?TYPE"?([,;\t])"?CONTENT\b', re.IGNORECASE)
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
_COLUMNS = frozenset(
    (
        *("TYPE", "CONTENT", "DESCRIPTION", "IS_COLLAPSED", "PRIORITY", "INDENT", "AUTHOR", "RESPONSIBLE"),
        *("DATE", "DATE_LANG", "TIMEZONE", "DURATION", "DURATION_UNIT", "DEADLINE", "DEADLINE_LANG"),
    )
)
_OTHER_NAMES = {"DUE_DATE": "DATE", "DUE_DATE_LANG": "DATE_LANG"}


@dataclass(frozen=True)
class _Row:
    location: str
    cells: dict[str, str]

    def __getitem__(self, name: str) -> str:
        return self.cells.get(name, "").strip()


def find_delimiter(text: str) -> str | None:
    """Returns the separator of the cells, which spreadsheets change; None if this is not a CSV of Todoist."""
    match = _HEADER.match(text[:100])
    return match[1] if match else None


def parse(text: str, now: Now) -> FileTasks:
    delimiter = find_delimiter(text)
    if delimiter is None:
        raise FileUnread("The file is not a Todoist CSV. Its first line must start with TYPE,CONTENT.")
    return _read_tasks(_read_rows(text, delimiter), now)


def _read_tasks(rows: Iterator[_Row | UnreadLine], now: Now) -> FileTasks:
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


def _read_rows(text: str, delimiter: str) -> Iterator[_Row | UnreadLine]:
    """Yields the rows that are not empty, with the number of their first line."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    names: list[str] | None = None
    while True:
        first = reader.line_num + 1
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error:
            lines = f"lines {first} to {reader.line_num}" if reader.line_num > first else f"line {first}"
            yield UnreadLine(lines, "A quotation mark is in the wrong place, or a cell is too long. Correct it.")
            continue
        if names is None:
            names = [_OTHER_NAMES.get(name, name) for name in (cell.strip().upper() for cell in row)]
            if unknown := [name for name in names if name and name not in _COLUMNS]:
                yield UnreadLine(
                    f"line {first}",
                    f"These columns are not known and were not read: {to_printable(', '.join(unknown))}.",
                )
        elif any(cell.strip() for cell in row):
            yield _Row(f"line {first}", dict(zip(names, row, strict=False)))


def _read_section(row: _Row) -> str | None:
    try:
        return normalize_label(row["CONTENT"])
    except LabelInvalid:
        return None


def _try_task(row: _Row, section: str | None, now: Now) -> FileTask | UnreadLine:
    try:
        return _read_task(row, section, now)
    except UnreadPart as problem:
        return UnreadLine(row.location, str(problem))


def _read_task(row: _Row, section: str | None, now: Now) -> FileTask:
    if row["PRIORITY"] not in _PRIORITIES:
        raise UnreadPart(f'PRIORITY is "{to_printable(row["PRIORITY"])}". Write 1 (the highest) to 4, or nothing.')
    title, labels = split_labels(row["CONTENT"].split(" "), "@")
    deadline = f"Deadline: {row['DEADLINE']}" if row["DEADLINE"] else ""
    due, repeat = _read_when(row, now)
    return FileTask(
        row.location,
        ("todoist", *(row[name] for name in ("CONTENT", "DESCRIPTION", "DATE", "DEADLINE"))),
        {
            "title": title,
            "description": "\n".join(part for part in (row["DESCRIPTION"], deadline) if part),
            "due": due,
            "priority": _PRIORITIES[row["PRIORITY"]],
            "labels": (*labels, section) if section else labels,
            "repeat": repeat,
        },
    )


def _read_when(row: _Row, now: Now) -> tuple[str | None, str | None]:
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
