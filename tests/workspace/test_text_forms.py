"""What reading, writing, adding to and editing do to the form of a text file: encoding, BOM, line ends, last line."""

from typing import Any, NamedTuple

import pytest

from tests.workspace.running import Person

BOM = b"\xef\xbb\xbf"
REFUSED = None


class Case(NamedTuple):
    name: str
    before: bytes
    read: str | None
    """What is said of the form, or None if the file is refused by every tool."""
    written: bytes | None = REFUSED
    """After the content "one\\n2\\n"."""
    appended: bytes | None = REFUSED
    """After "four\\n" was added."""
    edited: bytes | None = REFUSED
    """After the old text "one\\ntwo" became "1\\n2"."""
    notes: tuple[str, str, str] = ("", "", "")


def by_each_tool(note: str) -> tuple[str, str, str]:
    return (note, note, note)


CASES = [
    Case("LF", b"one\ntwo\n", "", b"one\n2\n", b"one\ntwo\nfour\n", b"1\n2\n"),
    Case(
        *("CRLF", b"one\r\ntwo\r\n", "CRLF line ends"),
        *(b"one\r\n2\r\n", b"one\r\ntwo\r\nfour\r\n", b"1\r\n2\r\n"),
        ("Kept: CRLF line ends.", "Kept: CRLF line ends.", ""),
    ),
    Case(
        *("CR", b"one\rtwo\r", "CR line ends", b"one\r2\r", b"one\rtwo\rfour\r", b"1\r2\r"),
        ("Kept: CR line ends.", "Kept: CR line ends.", ""),
    ),
    Case(
        *("more LF", b"one\ntwo\nx\r\n", "LF and CRLF line ends"),
        *(b"one\n2\n", b"one\ntwo\nx\r\nfour\r\n", b"1\n2\nx\r\n"),
        ("Its line ends are LF now; they were LF and CRLF.", "Kept: LF and CRLF line ends.", ""),
    ),
    Case(
        *("more CRLF", b"one\r\ntwo\r\nx\n", "CRLF and LF line ends"),
        *(b"one\r\n2\r\n", b"one\r\ntwo\r\nx\nfour\n", b"1\r\n2\r\nx\n"),
        ("Its line ends are CRLF now; they were CRLF and LF.", "", ""),
    ),
    Case("no last line end", b"one\ntwo", "", b"one\n2\n", b"one\ntwofour\n", b"1\n2", ("a line end", "continues", "")),
    Case(
        *("CRLF without the last", b"one\r\ntwo", "CRLF line ends", b"one\r\n2\r\n", b"one\r\ntwofour\r\n", b"1\r\n2"),
        ("Its last line has a line end now.", "continues that line", ""),
    ),
    Case(
        *("BOM", BOM + b"one\ntwo\n", "a byte order mark"),
        *(BOM + b"one\n2\n", BOM + b"one\ntwo\nfour\n", BOM + b"1\n2\n"),
        ("Kept: a byte order mark.", "", ""),
    ),
    Case(
        *("BOM and CRLF", BOM + b"one\r\ntwo\r\n", "CRLF line ends, a byte order mark"),
        *(BOM + b"one\r\n2\r\n", BOM + b"one\r\ntwo\r\nfour\r\n", BOM + b"1\r\n2\r\n"),
        ("Kept: CRLF line ends, a byte order mark.", "Kept: CRLF line ends, a byte order mark.", ""),
    ),
    Case("BOM alone", BOM, "a byte order mark", BOM + b"one\n2\n", BOM + b"four\n", None, ("Kept", "", "not found")),
    Case("empty", b"", "", b"one\n2\n", b"four\n", None, ("", "", "not found")),
    Case("one line", b"one", "", b"one\n2\n", b"onefour\n", None, ("a line end", "continues", "end of the file")),
    Case("blank lines", b"\n\none\ntwo\n\n", "", b"one\n2\n", b"\n\none\ntwo\n\nfour\n", b"\n\n1\n2\n\n"),
    Case("CR in a line", b"1%\r2%\none\ntwo\n", "", b"one\n2\n", b"1%\r2%\none\ntwo\nfour\n", b"1%\r2%\n1\n2\n"),
    Case("form feed", b"\x0cone\ntwo\n", "", b"one\n2\n", b"\x0cone\ntwo\nfour\n", b"\x0c1\n2\n"),
    Case(
        *("U+2028", "x\u2028y\none\ntwo\n".encode(), "", b"one\n2\n"),
        *("x\u2028y\none\ntwo\nfour\n".encode(), "x\u2028y\n1\n2\n".encode()),
    ),
    Case("UTF-16", "one\ntwo\n".encode("utf-16"), None, notes=by_each_tool("text in UTF-16")),
    Case(
        "UTF-16 big-endian",
        b"\xfe\xff" + "one\ntwo\n".encode("utf-16-be"),
        None,
        notes=by_each_tool("text in UTF-16"),
    ),
    Case("UTF-32", "one\ntwo\n".encode("utf-32"), None, notes=by_each_tool("text in UTF-32")),
    Case(
        "Latin-1",
        "Müll\none\ntwo\n".encode("latin-1"),
        None,
        notes=by_each_tool("not text in UTF-8"),
    ),
    Case(
        "Shift JIS",
        "日本\none\ntwo\n".encode("shift-jis"),
        None,
        notes=by_each_tool("not text in UTF-8"),
    ),
    Case("binary", b"\x89PNG\r\n\x1a\n\0", None, notes=by_each_tool("not text")),
]
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("write_file", {"content": "one\n2\n"}),
    ("write_file", {"content": "four\n", "append": True}),
    ("edit_file", {"old_text": "one\ntwo", "new_text": "1\n2"}),
]


async def content_of(person: Person, path: str) -> bytes:
    return (await person.http.get(f"/files/cnv_1/{path}")).content


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
async def test_form_is_kept_or_named(alice: Person, case: Case) -> None:
    expected = (case.written, case.appended, case.edited)
    for (tool, arguments), after, note in zip(CALLS, expected, case.notes, strict=True):
        await alice.put("a", case.before)
        if case.read is None:
            assert await alice.refusal("read_file", path="a")
        else:
            head = (await alice.call("read_file", path="a"))[0].split("\n")[0]
            assert head.partition(" (")[2].partition(")")[0].partition(", ")[2] == case.read
        if after is None:
            assert note in await alice.refusal(tool, path="a", **arguments)
            assert await content_of(alice, "a") == case.before
            continue
        text, details = await alice.call(tool, path="a", **arguments)
        assert await content_of(alice, "a") == after, tool
        assert details["bytes"] == len(after)
        assert note in text if note else text.count(".") == 1, text
        assert [note for note in details.get("notes", ()) if note not in text] == []


@pytest.mark.parametrize(
    ("before", "content", "diff", "note"),
    [
        (b"a\nb\n", "a\r\nb\r\n", ["-a", "-b", "+a^M", "+b^M"], "Its line ends are CRLF now; they were LF."),
        (b"a\r\nb\n", "a\nb\n", ["-a^M", "+a", " b"], "Its line ends are LF now"),
        (b"a\nb\n", "a\nb", [" a", "-b", "+b", "\\ No newline at end of file"], "Its last line has no line end now."),
        (b"a\n", "\ufeffa\n", [], "It has a byte order mark now."),
        (b"a\x0cb\n", "a\x0cc\n", ["-a\x0cb", "+a\x0cc"], ""),
    ],
)
async def test_changes_of_the_form_are_shown(
    alice: Person, before: bytes, content: str, diff: list[str], note: str
) -> None:
    await alice.put("a", before)
    text, details = await alice.call("write_file", path="a", content=content)
    assert details["diff"].split("\n")[3:] == diff
    assert note in text
    assert (details.get("notes") or [""])[-1].startswith(note)


async def test_large_files(alice: Person) -> None:
    """What is too large to edit is replaced in the form of its beginning, or refused."""
    await alice.put("text", b"line\r\n" * 200_000)
    await alice.put("latin", b"line\n" * 1_000 + b"M\xfcll" * 300_000)
    assert (await alice.call("write_file", path="text", content="a\nb\n"))[0].endswith("Kept: CRLF line ends.")
    assert await content_of(alice, "text") == b"a\r\nb\r\n"
    assert "not text in UTF-8" in await alice.refusal("write_file", path="latin", content="a\n")
    await alice.put("text", b"line\r\n" * 160_000)
    assert "limit" in await alice.refusal("write_file", path="text", content="x\n" * 400_000)


async def test_hard_links_are_named(alice: Person) -> None:
    calls = [*CALLS[:2], ("edit_file", {"old_text": "one\n", "new_text": "1\n"})]
    for number, (tool, arguments) in enumerate(calls):
        await alice.put("a", "one\n")
        await alice.call("run_command", command=f"ln a b{number}; ln a c{number}")
        text, details = await alice.call(tool, path="a", **arguments)
        assert "2 other names (hard links), where the old content stays" in text
        assert details["notes"][-1] in text
        assert await content_of(alice, f"b{number}") == b"one\n"


SIGNS = [
    ("He said “hi”, it\u2019s\n", 'said "hi", it\'s', 'said "hi", it is', "He said “hi”, it is\n"),
    ("a \u2013 b \u2014 c\n", "a - b - c", "a - b - d", "a \u2013 b \u2014 d\n"),
    ("10\u00a0km \u2026\n", "10 km ...", "11 km ...", "11\u00a0km \u2026\n"),
    ("cafe\u0301 x\n", "café x", "café y", "cafe\u0301 y\n"),
    ("café x\n", "cafe\u0301 x", "cafe\u0301 y", "café y\n"),
    ("zero\u200bwidth x\n", "zerowidth x", "zerowidth y", "zero\u200bwidth y\n"),
    ("full\uff1a\uff08x\uff09\n", "full:(x)", "full:(y)", "full\uff1a\uff08y\uff09\n"),
    ('say "hi" x\n', "say “hi” x", "say “hi” y", 'say "hi" y\n'),
    ("“a”\r\n“b”\r\n“c”\r\n", '"a"\n"b"\n"c"\n', '"a"\n"x"\n"y"\n"c"\n', '“a”\r\n"x"\r\n"y"\r\n“c”\r\n'),
    ("각 x\n", "\u1100\u1161\u11a8 x", "\u1100\u1161\u11a8 y", "각 y\n"),
    ("“a”\r\n“b”\r\n", '"a"\n"b"', '"a"\n"b"\n"c"', '“a”\r\n“b”\r\n"c"\r\n'),
]


@pytest.mark.parametrize(("before", "old", "new", "after"), SIGNS)
async def test_other_signs_are_found_and_kept(alice: Person, before: str, old: str, new: str, after: str) -> None:
    await alice.put("a", before)
    text, details = await alice.call("edit_file", path="a", old_text=old, new_text=new)
    assert (await content_of(alice, "a")).decode() == after
    assert "Other signs were matched: the file has " in text
    assert "(U+" in details["notes"][0]
    await alice.put("a", before + before)
    assert "found 2 times" in await alice.refusal("edit_file", path="a", old_text=old, new_text=new)


@pytest.mark.parametrize(
    ("before", "old", "sentence"),
    [
        ("def f():\n\treturn 1\n", "def f():\n    return 1", "line 2: ` return 1`. There the file has (U+0009 TAB)"),
        (
            "a\nthe long line here\n",
            "the long line there",
            "line 2: `the long line here`. There the file has h (U",
        ),
        ("one\ntwo\nthree\n", "one\ntwo\nfour", "line 3: `three`. There the file has t (U+0074"),
        ("one two \nthree\n", "one two\nthree", "line 1: `one two `. There the file has (U+0020 SPACE)"),
        ("one\ntwo", "two\n", "line 2: `two`. There the file has the end of the file"),
        ("x" * 300 + " here is it\n", "here was it", "There the file has i (U+0069"),
    ],
)
async def test_nearest_line_is_named(alice: Person, before: str, old: str, sentence: str) -> None:
    await alice.put("a", before)
    told = await alice.refusal("edit_file", path="a", old_text=old, new_text="new")
    assert told.startswith("old_text not found in a. The nearest is line ")
    assert sentence in told
    assert len(told) < 500


HOSTILE = [
    ("a" * 999_000, "a" * 400_000),
    ("a" * 999_000, "a" * 400_000 + "b"),
    ("a\r\n" * 300_000, "a\n" * 200_000 + "b"),
    ("e\u0301" * 300_000, "é" * 200_000 + "x"),
    ("\u201ca\n" * 190_000, '"a\n' * 100_000 + "x"),
]


@pytest.mark.long(seconds=20)
@pytest.mark.parametrize(("before", "old"), HOSTILE, ids=range(len(HOSTILE)))
async def test_no_text_takes_long(alice: Person, before: str, old: str) -> None:
    await alice.put("a", before)
    assert await alice.refusal("edit_file", path="a", old_text=old, new_text="b")
