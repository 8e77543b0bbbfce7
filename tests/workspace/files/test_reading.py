import pytest

from service.tool_server.refusals import Refusal
from workspace.files import reading
from workspace.files.folder import Folder


def put(folder: Folder, content: bytes | str, name: str = "a.md") -> None:
    (folder.path / name).write_bytes(content.encode() if isinstance(content, str) else content)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("", "File: a.md (0 lines)"),
        ("one", "File: a.md (1 line)\n1: one"),
        ("one\n\nthree\n", "File: a.md (3 lines)\n1: one\n2: \n3: three"),
        ("ä\n日本\n", "File: a.md (2 lines)\n1: ä\n2: 日本"),
    ],
)
def test_lines_have_numbers(folder: Folder, content: str, text: str) -> None:
    put(folder, content)
    assert reading.read(folder, "a.md").text == text


def test_a_page(folder: Folder) -> None:
    put(folder, "".join(f"line {number}\n" for number in range(1, 5_001)))
    answer = reading.read(folder, "a.md", offset=10, limit=2)
    assert answer.text == (
        "File: a.md (5,000 lines)\n10: line 10\n11: line 11\n(Lines 12 to 5,000 follow: read on with offset=12.)"
    )
    assert answer.details == {"path": "a.md", "total_lines": 5_000, "bytes": 48_893, "offset": 10, "lines": 2}
    assert reading.read(folder, "a.md").details["lines"] == 2_000
    assert reading.read(folder, "a.md", offset=5_000).text == "File: a.md (5,000 lines)\n5000: line 5000"
    with pytest.raises(Refusal, match=r"^a.md has 5,000 lines: give an offset from 1 to that.$"):
        reading.read(folder, "a.md", offset=5_001)


def test_as_many_lines_as_fit_in_50_kb(folder: Folder) -> None:
    put(folder, "ä" * 500 + "\n")
    put(folder, ("ä" * 500 + "\n") * 100)
    answer = reading.read(folder, "a.md")
    assert 45_000 < len(answer.text.encode()) <= 50_000
    last = answer.details["lines"]
    assert answer.text.endswith(f"\n(Lines {last + 1} to 100 follow: read on with offset={last + 1}.)")
    assert reading.read(folder, "a.md", offset=last + 1).text.splitlines()[1].startswith(f"{last + 1}: ä")


@pytest.mark.parametrize("length", [60_000, 65_536, 200_001, 3_000_000])
def test_a_line_that_no_page_could_hold(folder: Folder, length: int) -> None:
    put(folder, "日" * (length // 3) + "\nshort\n")
    answer = reading.read(folder, "a.md")
    assert len(answer.text.encode()) <= 50_000
    assert "日 (the line goes on)\n(Lines 2 to 2 follow: read on with offset=2.)" in answer.text
    assert reading.read(folder, "a.md", offset=2).text == "File: a.md (2 lines)\n2: short"


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("a.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "a.png is not text: 16 bytes, image/png."),
        ("data", b"a" * 9_000 + b"\xff" * 2_000, "data is not text: 11,000 bytes, of unknown type."),
        ("latin.txt", "Müll".encode("latin-1"), "latin.txt is not text: 4 bytes, text/plain."),
    ],
)
def test_what_is_no_text_is_told_by_size_and_type(folder: Folder, name: str, content: bytes, sentence: str) -> None:
    put(folder, content, name)
    with pytest.raises(Refusal) as refused:
        reading.read(folder, name)
    assert str(refused.value) == sentence


def test_a_character_may_lie_across_any_border(folder: Folder) -> None:
    for shift in range(4):
        put(folder, "a" * shift + "日" * 4_000 + "\n")
        assert "(1 line)" in reading.read(folder, "a.md").text


def test_what_is_not_there(folder: Folder) -> None:
    with pytest.raises(Refusal, match=r"^There is no b.md in this folder: list_files shows what there is.$"):
        reading.read(folder, "b.md")
