"""In which files tasks are found: their encodings and formats, and what is said of files that cannot be read."""

import io
import json
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from mcp_server.imports import formats
from mcp_server.imports.file_tasks import FileTask, FileUnread, UnreadLine
from mcp_server.tasks.zones import Now

BERLIN = ZoneInfo("Europe/Berlin")
NOW = Now(datetime(2026, 11, 22, 10, 30, tzinfo=BERLIN), BERLIN)
TASK = {"id": 7, "title": "milk", "status": "pending", "created_at": "2026-10-01T08:00:00+00:00"}
EXPORT = json.dumps({"tasks": [TASK], "changes": [], "people": []})
TODOIST = "TYPE,CONTENT,PRIORITY\r\ntask,größer,1\r\n"
TICKTICK = (
    '"Date: 2025-11-25+0000"\n"Version: 7.1"\n"Status: \n0 Normal\n1 Completed\n2 Archived"\n'
    '"Folder Name","List Name","Title","Content","Due Date","Priority","Status"\n'
    '"","Inbox","größer","","","0","0"\n'
)
OUTLOOK = '"Subject","Due Date","Date Completed","Status"\r\n"größer","","","Not Started"\r\n'
ICALENDAR = "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nBEGIN:VTODO\r\nSUMMARY:grö\r\n ßer\r\nEND:VTODO\r\nEND:VCALENDAR\r\n"
TODO_TXT = "(A) größer\n"


def read(data: bytes, name: str = "", format: str | None = None) -> list[str]:
    """The titles of the tasks."""
    text = formats.decode(formats.read_bytes(io.BytesIO(data)))
    tasks = [*formats.parse(text, format or formats.detect_format(text, name), NOW)]
    return [str(task.arguments["title"]) for task in tasks if isinstance(task, FileTask)]


@pytest.mark.parametrize(
    ("format", "text"),
    [
        ("export", EXPORT.replace("milk", "größer")),
        ("todoist", TODOIST),
        ("ticktick", TICKTICK),
        ("microsoft-todo", OUTLOOK),
        ("icalendar", ICALENDAR),
        ("todo.txt", TODO_TXT),
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-be with a mark"])
@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
def test_formats_and_encodings(format: str, text: str, encoding: str, line_end: str) -> None:
    text = text.replace("\r\n", "\n").replace("\n", line_end)
    data = b"\xfe\xff" + text.encode("utf-16-be") if "mark" in encoding else text.encode(encoding)
    assert formats.detect_format(formats.decode(data)) == format
    assert read(data) == ["größer"]


@pytest.mark.parametrize("text", [TODOIST, TICKTICK, OUTLOOK], ids=["todoist", "ticktick", "outlook"])
@pytest.mark.parametrize("delimiter", [";", "\t"])
def test_separators_of_spreadsheets(text: str, delimiter: str) -> None:
    assert read(text.replace(",", delimiter).encode()) == ["größer"]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("milk\nbread\n", "todo.txt"),
        ("milk\n", "My.todo.txt"),
        ("milk\n", "done.txt"),
        ("(A) milk\nbread\n", ""),
        ("x 2026-11-20 milk\n", "old.txt"),
        ("milk +shop\nbread @shop\n", "list.txt"),
        ("milk due:2026-11-27\n2026-11-01 bread rec:1w\neggs\n", ""),
    ],
    ids=range(7),
)
def test_signs_of_a_todo_txt(text: str, name: str) -> None:
    assert formats.detect_format(text, name) == "todo.txt"


UNKNOWN = {
    "tasks.taskpaper": "Home:\n\t- Buy milk @due(2026-12-01)\n\t- Water @today\nWork:\n- Report @done\n",
    "tasks.org": "* TODO Buy milk :home:\n  DEADLINE: <2026-12-01 Tue>\n* DONE Report\n",
    "tasks.yaml": "tasks:\n  - title: Buy milk\n    due: 2026-12-01\n",
    "tasks.md": "# Home\n- [ ] Buy milk @shop\n- [x] Bread @shop\n",
    "server.log": "2026-11-01 12:00:01 started\n2026-11-01 12:00:02 ERROR no milk\n",
    "ledger.journal": "2026-11-01 Supermarket\n    Expenses:Food  10\n",
    "list.txt": "milk\nbread\n",
    "other.csv": "Title\nmilk\n",
    "other.json": "Title\nmilk\n",
    "array.json": '[{"title": "milk"}]',
    "page.html": "<p>milk</p>",
    "milk.pdf": "%PDF-1.7",
    "milk.rtf": "{\\rtf1 milk}",
    "milk.vcf": "BEGIN:VCARD\nFN:milk\nEND:VCARD\n",
    "thought.csv": "TYPE of thing, CONTENT\n",
    "things.csv": "Name,Status,Due Date\nmilk,open,2026-12-01\n",
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_other_formats(name: str) -> None:
    with pytest.raises(FileUnread, match=r"no known format.*name the format with --format"):
        read(UNKNOWN[name].encode(), name)


@pytest.mark.parametrize("format", formats.FORMATS)
def test_format_that_is_given(format: str) -> None:
    if format == "todo.txt":
        assert read(b'{"milk"}\nbread\n', format=format) == ['{"milk"}', "bread"]
    else:
        with pytest.raises(FileUnread):
            read(b"milk\n", format=format)


@pytest.mark.parametrize(
    "data",
    [b"", b"\n \n", b"\xef\xbb\xbf", b"TYPE,CONTENT\n", b'{"todo": {"tasks": []}}', b"BEGIN:VCALENDAR\nEND:VCALENDAR"],
    ids=range(6),
)
def test_nothing_to_import(data: bytes) -> None:
    assert read(data) == []


NOT_READ: list[tuple[bytes, str]] = [
    (b"PK\x03\x04\x14\x00\x08\xff", "backup.zip"),
    *[(b"milk\0", "todo.txt"), (b"one\nthr\xe9e\n", "todo.txt"), (b"\xff\xfeo\x00n", "todo.txt")],
    *[("(A) ab".encode("utf-16-le"), "todo.txt"), ("größer".encode("cp1252"), "todo.txt")],
    *[(b"{}", ""), (b'{"todo": 5}', ""), (b'{"tasks": null}', ""), (b'{"a":' * 200_000, "")],
    (EXPORT[:-40].encode(), ""),
    (json.dumps({"version": 9, "todo": {"tasks": [TASK]}}).encode(), ""),
    (json.dumps({"kind": "tasks#taskLists", "items": [{"title": "milk"}]}).encode(), "Tasks.json"),
    (b"BEGIN:VCALENDAR\nBEGIN:VEVENT\nSUMMARY:milk\nEND:VEVENT\nEND:VCALENDAR\n", ""),
]


@pytest.mark.parametrize(("data", "name"), NOT_READ, ids=range(len(NOT_READ)))
def test_file_that_cannot_be_read(data: bytes, name: str) -> None:
    with pytest.raises(FileUnread) as unread:
        read(data, name)
    assert len(str(unread.value).splitlines()) == 1


def test_file_that_is_too_large() -> None:
    with pytest.raises(FileUnread, match=r"larger than 64 MB. Import it in parts"):
        read(b"(A) milk\n" * (formats.MAX_BYTES // 9 + 1))


CALENDARS = {
    "no end": ("BEGIN:VTODO\nSUMMARY:a\n", "ends before END:VTODO"),
    "a to-do within another": ("BEGIN:VTODO\nSUMMARY:a\nBEGIN:VTODO\nSUMMARY:b\nEND:VTODO\n", "has no END:VTODO"),
    "a line that is none": ("BEGIN:VTODO\nSUMMARY:a\nmilk and bread\nEND:VTODO\n", "is not a line of a calendar"),
    "no date": ("BEGIN:VTODO\nSUMMARY:a\nDUE:tomorrow\nEND:VTODO\n", 'DUE is "tomorrow"'),
    "another zone": ("BEGIN:VTODO\nSUMMARY:a\nDUE;TZID=Mars:20261127T100000\nEND:VTODO\n", 'zone "Mars" of DUE'),
    "half a zone": ("BEGIN:VTODO\nSUMMARY:a\nDUE;TZID=Europe:20261127T100000\nEND:VTODO\n", "DUE"),
    "another year": ("BEGIN:VTODO\nSUMMARY:a\nDUE:00010101T000000Z\nEND:VTODO\n", "not within the years"),
    "a priority": ("BEGIN:VTODO\nSUMMARY:a\nPRIORITY:high\nEND:VTODO\n", 'PRIORITY is "high"'),
    "a length": ("BEGIN:VTODO\nSUMMARY:a\nDUE:PT1H\nEND:VTODO\n", "DUE is a length of time"),
}


@pytest.mark.parametrize("case", CALENDARS)
def test_broken_to_do_of_a_calendar(case: str) -> None:
    """Only the broken one is left out."""
    text, why = CALENDARS[case]
    calendar = f"BEGIN:VCALENDAR\nBEGIN:VTODO\nSUMMARY:first\nEND:VTODO\n{text}END:VCALENDAR\n"
    parts = [*formats.parse(calendar, "icalendar", NOW)]
    problems = [part for part in parts if isinstance(part, UnreadLine)]
    assert len(problems) == 1
    assert why in problems[0].why
    assert isinstance(parts[0], FileTask)
