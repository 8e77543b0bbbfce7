"""From the bytes of a file to its tasks: which text they are, and which format."""

import codecs
from typing import BinaryIO, Literal

from mcp_server.imports import own_export, todo_txt, todoist
from mcp_server.imports.file_tasks import FileUnread, Read
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
"""How texts of other formats begin, which would be read as lines of a todo.txt."""
MOST_BYTES = 64 * 1024 * 1024


def bytes_of(file: BinaryIO) -> bytes:
    """What of a file is read; more than `MOST_BYTES` if it is too large."""
    return own_export.tasks_part(file, most=MOST_BYTES)


def text_of(data: bytes) -> str:
    """The text of a file: UTF-8, or UTF-16 that begins with its mark; raises `FileUnread`."""
    if len(data) > MOST_BYTES:
        raise FileUnread(f"The file is larger than {MOST_BYTES // 2**20} MB. Import it in parts.")
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


def recognised(text: str, name: str = "") -> Format:
    """The format of a file with this name; raises `FileUnread` where the name says what the text is not."""
    begun = text[:100].lstrip()
    if begun.startswith("{") or (begun.startswith("[") and own_export.is_json(text)):
        return "export"
    if todoist.delimiter_of(text):
        return "todoist"
    if other := next((what for start, what in _OTHER_FORMATS.items() if begun.upper().startswith(start)), None):
        raise FileUnread(f"The file is {other}. Give a Todoist CSV, a todo.txt or what ./todo export wrote.")
    if name.lower().endswith((".csv", ".tsv")):
        raise FileUnread("A Todoist CSV starts with TYPE,CONTENT; this one does not. Correct it, or give --format.")
    if name.lower().endswith(".json"):
        raise FileUnread("The file is not JSON. Give what ./todo export wrote, or name its format with --format.")
    return "todo.txt"


def parse(text: str, format: Format, now: Now) -> Read:
    match format:
        case "todoist":
            return todoist.parse(text, now)
        case "export":
            return own_export.parse(text)
        case "todo.txt":
            return todo_txt.parse(text, now)
