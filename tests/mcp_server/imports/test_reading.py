"""From bytes to a text and its format."""

import io
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcp_server.imports import reading
from mcp_server.imports.found import FileUnread
from mcp_server.imports.reading import FORMATS, MOST_BYTES, Format
from tests.mcp_server.imports.read import tasks_and_problems

GROESSER = "größer\r\nzwei"
HEADER = "TYPE,CONTENT,DESCRIPTION,PRIORITY,INDENT,DATE\n"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_a_text_in_its_encoding(encoding: str) -> None:
    assert reading.text_of(GROESSER.encode(encoding)) == GROESSER


def test_a_text_of_the_other_order_of_bytes() -> None:
    assert reading.text_of(b"\xfe\xff" + GROESSER.encode("utf-16-be")) == GROESSER


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"one\ntwo\nthr\xe9e\n", "The file is no UTF-8 text, see line 3: save it as UTF-8."),
        (b"\xff\xfeo\x00n", "The file is no UTF-16 text, see line 1: save it as UTF-8."),
        (b"one\nt\0wo\n", "The file is no text, line 2 has a NUL: give a CSV of Todoist, a todo.txt or an export."),
        ("ab".encode("utf-16-le"), "The file is no text, line 1 has a NUL"),
        (b"PK\x03\x04\x14\x00\x00\x00", "The file is no text, line 1 has a NUL"),
        (b"x" * (MOST_BYTES + 1), "The file is larger than 64 MB: import it in parts."),
    ],
    ids=["latin-1", "cut", "nul", "no mark", "zip", "large"],
)
def test_what_is_no_text_is_told_as_a_whole(data: bytes, sentence: str) -> None:
    with pytest.raises(FileUnread) as told:
        reading.text_of(data)
    assert str(told.value).startswith(sentence)


@pytest.mark.parametrize(
    ("file", "kept"),
    [
        (b"", b""),
        (b'milk\n"changes": none\nbread', b'milk\n"changes": none\nbread'),
        (b'{"tasks": [\n{},\n{}],\n"changes": [\n{}]}\n', b'{"tasks": [\n{},\n{}],\n"changes": []}'),
        (
            b'{"version": 1, "user": "a"\n, "todo": {"tasks": [\n{}],\n"changes": [\n{}],\n"people": []}\n}',
            b'{"version": 1, "user": "a"\n, "todo": {"tasks": [\n{}],\n"changes": []}}',
        ),
    ],
)
def test_of_an_export_only_the_tasks_are_read(file: bytes, kept: bytes) -> None:
    assert reading.bytes_of(io.BytesIO(file)) == kept


@pytest.mark.parametrize("begin", [b"", b'{"tasks": [\n'])
def test_of_a_file_that_is_too_large_little_more_is_read(begin: bytes) -> None:
    file = io.BytesIO(begin + (b"x" * (2**20 - 1) + b"\n") * (MOST_BYTES // 2**20 + 9))
    assert MOST_BYTES < len(reading.bytes_of(file)) <= MOST_BYTES + 2**20
    assert file.tell() <= MOST_BYTES + 2**21


@pytest.mark.parametrize(
    ("text", "format"),
    [
        ("", "todo.txt"),
        ("buy milk", "todo.txt"),
        ("[ ] buy milk", "todo.txt"),
        ("TYPE of thing, CONTENT", "todo.txt"),
        (HEADER, "todoist"),
        ('"TYPE";"CONTENT"', "todoist"),
        ("Type\tContent", "todoist"),
        ('\n {"version": 1}', "export"),
        ("{ not json", "export"),
        ('[{"title": "milk"}]', "export"),
    ],
)
def test_a_format_is_recognised_by_what_the_file_holds(text: str, format: Format) -> None:
    assert reading.recognised(text) == format


@pytest.mark.parametrize(
    ("name", "sentence"),
    [("tasks.CSV", "This CSV is not Todoist's"), ("a.json", "The file is not JSON")],
)
def test_a_file_that_is_not_what_its_name_says_is_not_taken_for_a_todo_txt(name: str, sentence: str) -> None:
    with pytest.raises(FileUnread, match=sentence):
        reading.recognised("Title,Due\nmilk,2026-11-27\n", name)


PIECES = [
    *("x ", "(A) ", "2026-11-20 ", "2026-02-30 ", "+a", " @b ", " due:", "rec:", "+1d", "pri:B "),
    *("task,", "note,", '"', ",", ";", "every ", "every! ", "mon ", "27th ", "at 9", "until ", "starting "),
    *("{", "[", "\\", "null", "1e999", "\n", "\r", "\u2028", "\x0b"),
]
TEXTS = st.lists(st.sampled_from(PIECES) | st.text(max_size=8), max_size=40).map("".join)


@given(text=TEXTS, format=st.sampled_from(FORMATS), header=st.booleans())
@settings(max_examples=100, deadline=None)
def test_any_text_is_read_or_told_why_not(text: str, format: Format, header: bool) -> None:
    whole = (HEADER if header else "") + text
    try:
        tasks, problems = tasks_and_problems(whole, format)
    except FileUnread:
        return
    lines = whole.count("\n") + whole.count("\r") + 1
    assert len(tasks) + len(problems) <= lines
    assert all(place.split()[0] in ("line", "lines", "task") for place in problems)


@pytest.mark.parametrize(
    ("text", "format"),
    [
        ("x" * 2_000_000, "todo.txt"),
        ("@a " * 700_000, "todo.txt"),
        ("@a @b @c\n" * 10_000, "todo.txt"),
        (HEADER + 'task,"' + "x" * 2_000_000, "todoist"),
        (HEADER + 'task,"' + "x\n" * 150_000, "todoist"),
        (HEADER + "task,a\n" + "note,b\n" * 50_000, "todoist"),
        (HEADER + f"task,a,,4,1,{'every ' * 20_000}\n", "todoist"),
        (HEADER + "task," + "@a " * 30_000 + "\n", "todoist"),
        ('{"tasks": [' + "5," * 50_000 + "5]}", "export"),
    ],
    ids=range(9),
)
def test_no_text_takes_long(text: str, format: Format) -> None:
    began = time.process_time()
    tasks_and_problems(text, format)
    assert time.process_time() - began < 4
