"""Decodes a file and detects its format."""

import codecs
from typing import BinaryIO, Literal

from mcp_server.imports import todo_export, todo_txt, todoist
from mcp_server.imports.file_tasks import FileTasks, FileUnread
from mcp_server.tasks.zones import Now

Format = Literal["todoist", "todo.txt", "export"]
FORMATS: tuple[Format, ...] = ("todoist", "todo.txt", "export")
_OTHER_FORMATS = {
    "BEGIN:VCALENDAR": "a calendar",
    "BEGIN:VCARD": "a list of contacts",
    "<": "HTML or XML",
    "%PDF": "a PDF",
    "{\\RTF": "rich text",
    "PK\x03\x04": "an archive",
}
"""How files of other formats begin, which would otherwise be read as a todo.txt."""
MAX_BYTES = 64 * 1024 * 1024


def read_bytes(file: BinaryIO) -> bytes:
    """Returns more than `MAX_BYTES` for a file that is too large."""
    return todo_export.read_tasks_part(file, max_bytes=MAX_BYTES)


def decode(data: bytes) -> str:
    """Accepts UTF-8, and UTF-16 with a byte order mark; raises `FileUnread`."""
    if len(data) > MAX_BYTES:
        raise FileUnread(f"The file is larger than {MAX_BYTES // 2**20} MB. Import it in parts.")
    utf16 = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    try:
        text = data.decode("utf-16" if utf16 else "utf-8-sig")
    except UnicodeDecodeError as error:
        encoding = "UTF-16" if utf16 else "UTF-8"
        line = data.count(b"\n", 0, error.start) + 1
        raise FileUnread(f"The file is not {encoding} text, see line {line}. Save it as UTF-8.") from None
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise FileUnread(f"The file is not text: line {line} has a NUL. Give a Todoist CSV, a todo.txt or an export.")
    return text


def detect_format(text: str, name: str = "") -> Format:
    """Raises `FileUnread` for other formats, and if the name does not fit the text."""
    start = text[:100].lstrip()
    if start.startswith("{") or (start.startswith("[") and todo_export.is_json(text)):
        return "export"
    if todoist.find_delimiter(text):
        return "todoist"
    if other := next((name for prefix, name in _OTHER_FORMATS.items() if start.upper().startswith(prefix)), None):
        raise FileUnread(f"The file is {other}. Give a Todoist CSV, a todo.txt or what ./todo export wrote.")
    if name.lower().endswith((".csv", ".tsv")):
        raise FileUnread("A Todoist CSV starts with TYPE,CONTENT; this one does not. Correct it, or give --format.")
    if name.lower().endswith(".json"):
        raise FileUnread("The file is not JSON. Give what ./todo export wrote, or name its format with --format.")
    return "todo.txt"


def parse(text: str, format: Format, now: Now) -> FileTasks:
    match format:
        case "todoist":
            return todoist.parse(text, now)
        case "export":
            return todo_export.parse(text)
        case "todo.txt":
            return todo_txt.parse(text, now)
