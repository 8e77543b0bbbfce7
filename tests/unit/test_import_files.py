"""In which files tasks are found: their encodings and formats, and what is said of files that cannot be read."""

import io
import json
from contextlib import suppress
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from mcp_server.imports import formats
from mcp_server.imports.file_tasks import FileTask, FileUnread
from mcp_server.tasks.zones import Now

BERLIN = ZoneInfo("Europe/Berlin")
NOW = Now(datetime(2026, 11, 22, 10, 30, tzinfo=BERLIN), BERLIN)
TASK = {"id": 7, "title": "milk", "status": "pending", "created_at": "2026-10-01T08:00:00+00:00"}


def read(data: bytes, name: str = "") -> list[str]:
    """The titles of the tasks."""
    text = formats.decode(formats.read_bytes(io.BytesIO(data)))
    tasks = [*formats.parse(text, formats.detect_format(text, name), NOW)]
    return [str(task.arguments["title"]) for task in tasks if isinstance(task, FileTask)]


@pytest.mark.parametrize(
    ("data", "title"),
    [
        ("größer".encode("utf-8-sig"), "größer"),
        ("größer".encode("utf-16"), "größer"),
        (b"\xfe\xff" + "größer".encode("utf-16-be"), "größer"),
        (b"TYPE of thing, CONTENT", "TYPE of thing, CONTENT"),
        (b'"TYPE";"CONTENT"\n"task";"milk"', "milk"),
        (json.dumps({"tasks": [TASK], "changes": [], "people": []}).encode(), "milk"),
    ],
    ids=range(6),
)
def test_encodings_and_formats(data: bytes, title: str) -> None:
    assert read(data) == [title]


@pytest.mark.parametrize("format", formats.FORMATS)
def test_each_format_has_a_parser(format: formats.Format) -> None:
    with suppress(FileUnread):
        assert formats.parse("", format, NOW) is not None


@pytest.mark.parametrize("data", [b"", b"\n \n", b"TYPE,CONTENT\n", b'{"todo": {"tasks": []}}'], ids=range(4))
def test_nothing_to_import(data: bytes) -> None:
    assert read(data) == []


NOT_READ: list[tuple[bytes, str]] = [
    *[(b"milk\0", ""), (b"Title\nmilk\n", "a.csv"), (b"Title\nmilk\n", "a.json")],
    *[(b"one\nthr\xe9e\n", ""), (b"\xff\xfeo\x00n", ""), ("ab".encode("utf-16-le"), ""), (b"PK\x03\x04\x14\x00", "")],
    *[(b"{}", ""), (b'{"todo": 5}', ""), (b'{"tasks": null}', ""), (b'{"a":' * 200_000, "")],
    (json.dumps({"version": 9, "todo": {"tasks": [TASK]}}).encode(), ""),
    *[(b"BEGIN:VCALENDAR\nSUMMARY:milk\n", ""), (b"<p>milk</p>", ""), (b"%PDF-1.7", ""), (b"{\\rtf1 milk}", "")],
]


@pytest.mark.parametrize(("data", "name"), NOT_READ, ids=range(len(NOT_READ)))
def test_file_that_cannot_be_read(data: bytes, name: str) -> None:
    with pytest.raises(FileUnread) as unread:
        read(data, name)
    assert len(str(unread.value).splitlines()) == 1
