"""Decodes a file, detects its format and parses it."""

import codecs
from collections.abc import Callable
from dataclasses import dataclass
from typing import BinaryIO

from mcp_server.imports import outlook, ticktick, todo_export, todo_txt, todoist, vtodo
from mcp_server.imports.file_tasks import FileTasks, FileUnread
from mcp_server.tasks.zones import Now


@dataclass(frozen=True)
class FileFormat:
    title: str
    """Completes the sentence "Give …"."""
    is_format: Callable[[str, str], bool]
    """Whether a text, in a file of this name, has the signs of the format."""
    parse: Callable[[str, Now], FileTasks]
    """Raises `FileUnread`, at the latest when the first task is read."""


FORMATS = {
    "export": FileFormat(
        "what ./todo export wrote",
        lambda text, name: todo_export.is_json_object(text),
        lambda text, now: todo_export.parse(text),
    ),
    "todoist": FileFormat(
        "a CSV of Todoist", lambda text, name: todoist.find_todoist_header(text) is not None, todoist.parse
    ),
    "ticktick": FileFormat(
        "a backup of TickTick", lambda text, name: ticktick.find_ticktick_header(text) is not None, ticktick.parse
    ),
    "microsoft-todo": FileFormat(
        "a CSV of Outlook's tasks", lambda text, name: outlook.find_outlook_header(text) is not None, outlook.parse
    ),
    "icalendar": FileFormat("an .ics of to-dos", lambda text, name: vtodo.is_icalendar(text), vtodo.parse),
    "todo.txt": FileFormat("a todo.txt", todo_txt.is_todo_txt, todo_txt.parse),
}
"""By the names of `--format`, in the order in which they are looked for."""
_ARCHIVE = b"PK\x03\x04"  # of a ZIP, such as a backup of Todoist
MAX_BYTES = 64 * 1024 * 1024


def read_bytes(file: BinaryIO) -> bytes:
    """Returns more than `MAX_BYTES` for a file that is too large."""
    return todo_export.read_tasks_part(file, max_bytes=MAX_BYTES)


def decode(data: bytes) -> str:
    """Accepts UTF-8, and UTF-16 with a byte order mark; raises `FileUnread`."""
    if len(data) > MAX_BYTES:
        raise FileUnread(f"The file is larger than {MAX_BYTES // 2**20} MB. Import it in parts.")
    if data.startswith(_ARCHIVE):
        raise FileUnread("The file is an archive. Unpack it, and import the files in it.")
    utf16 = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    try:
        text = data.decode("utf-16" if utf16 else "utf-8-sig")
    except UnicodeDecodeError as error:
        encoding = "UTF-16" if utf16 else "UTF-8"
        line = data.count(b"\n", 0, error.start) + 1
        raise FileUnread(f"The file is not {encoding} text, see line {line}. Save it as UTF-8.") from None
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise FileUnread(f"The file is not text: line {line} has a NUL. Save it as UTF-8.")
    return text


def detect_format(text: str, name: str = "") -> str | None:
    """Returns None for a file without anything; raises `FileUnread` if no format's signs are found."""
    if not text.strip():
        return None
    for format, description in FORMATS.items():
        if description.is_format(text, name):
            return format
    *others, last = (description.title for description in FORMATS.values())
    raise FileUnread(
        f"The file has no known format. Give {', '.join(others)} or {last}. If it is one of these, or has a task in "
        "each line, name the format with --format."
    )


def parse(text: str, format: str | None, now: Now) -> FileTasks:
    return FORMATS[format].parse(text, now) if format else iter(())
