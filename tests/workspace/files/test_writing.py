import os
import stat
import threading
from pathlib import Path

import pytest

from service.tool_server.refusals import Refusal
from workspace.files import reading, writing
from workspace.files.folder import Folder, Store
from workspace.files.quota import Quota


def test_a_new_file_with_its_directories(folder: Folder) -> None:
    answer = writing.write(folder, "notes/2026/plan.md", "one\ntwo\n")
    assert answer.text == "Created notes/2026/plan.md: 8 bytes."
    assert answer.details["created"] is True
    assert answer.details["bytes"] == 8
    assert answer.details["diff"].splitlines()[2:] == ["@@ -0,0 +1,2 @@", "+one", "+two"]
    assert (folder.path / "notes/2026/plan.md").read_text() == "one\ntwo\n"


def test_one_that_is_replaced_keeps_its_mode(folder: Folder) -> None:
    place = folder.path / "run.sh"
    place.write_text("one\n")
    place.chmod(0o4755)
    answer = writing.write(folder, "run.sh", "two\n")
    assert answer.text == "Replaced run.sh: 4 bytes."
    assert answer.details["created"] is False
    assert answer.details["diff"].splitlines()[2:] == ["@@ -1 +1 @@", "-one", "+two"]
    assert stat.S_IMODE(place.stat().st_mode) == 0o755


def test_a_hard_link_is_left_as_it_was(folder: Folder) -> None:
    (folder.path / "a").write_text("one")
    os.link(folder.path / "a", folder.path / "b")
    writing.write(folder, "a", "two")
    assert (folder.path / "b").read_text() == "one"


def test_whoever_reads_meanwhile_reads_one_or_the_other(folder: Folder) -> None:
    versions = ["a" * 300_000, "b" * 300_000]
    writing.write(folder, "a.md", versions[0])
    over = threading.Event()

    def write() -> None:
        for number in range(50):
            writing.write(folder, "a.md", versions[number % 2])
        over.set()

    writer = threading.Thread(target=write)
    writer.start()
    while not over.is_set():
        assert (folder.path / "a.md").read_text() in versions
    writer.join()


def test_more_than_1_mb_is_refused(folder: Folder) -> None:
    writing.write(folder, "a.md", "x" * 1_000_000)
    for content in ("x" * 1_000_001, "ä" * 500_001):
        with pytest.raises(Refusal, match=r"^content has 1,000,00\d bytes and may have 1,000,000: write it in parts "):
            writing.write(folder, "b.md", content)
    assert os.listdir(folder.path) == ["a.md"]


@pytest.mark.parametrize("lines", [1_000, 100_000])
def test_a_diff_has_at_most_20_kb(folder: Folder, lines: int) -> None:
    content = "".join(f"{number:030}\n" for number in range(lines // 4))
    diff = writing.write(folder, "a.md", content).details["diff"]
    assert len(diff.encode()) <= 20_000
    assert diff == "(the rest of the changes is left out)" or lines == 1_000


def test_a_small_change_in_a_large_file_is_a_small_diff(folder: Folder) -> None:
    lines = [f"line {number}\n" for number in range(1, 50_001)]
    (folder.path / "a.md").write_text("".join(lines))
    answer = writing.edit(folder, "a.md", "line 40000\n", "another\nand one more\n")
    assert answer.details["diff"].splitlines() == [
        *("--- a.md", "+++ a.md", "@@ -39997,7 +39997,8 @@"),
        *(" line 39997", " line 39998", " line 39999", "-line 40000", "+another", "+and one more"),
        *(" line 40001", " line 40002", " line 40003"),
    ]


class TestEdits:
    @pytest.fixture(autouse=True)
    def plan(self, folder: Folder) -> None:
        (folder.path / "plan.md").write_text("milk\nbread\nmilk and honey\n")

    def test_the_one_place_is_replaced(self, folder: Folder) -> None:
        answer = writing.edit(folder, "plan.md", "bread", "rye bread\nbutter")
        assert answer.text == "Edited plan.md: 37 bytes now."
        assert (folder.path / "plan.md").read_text() == "milk\nrye bread\nbutter\nmilk and honey\n"
        assert answer.details["diff"].splitlines()[2:] == [
            *("@@ -1,3 +1,4 @@", " milk", "-bread", "+rye bread", "+butter", " milk and honey")
        ]

    @pytest.mark.parametrize(
        ("old", "sentence"),
        [
            ("tea", "old_text not found in plan.md: give it exactly as in the file, with its spaces and without the"),
            ("2: bread", "old_text not found in plan.md: give it exactly as in the file, with its spaces and without"),
            ("milk", "old_text found 2 times in plan.md, must be unique: give more of the lines around it."),
            ("", "old_text must not be empty and new_text must differ from it: nothing was changed."),
            ("new", "old_text must not be empty and new_text must differ from it: nothing was changed."),
        ],
    )
    def test_every_other_one_is_a_sentence(self, folder: Folder, old: str, sentence: str) -> None:
        with pytest.raises(Refusal) as refused:
            writing.edit(folder, "plan.md", old, "new")
        assert str(refused.value).startswith(sentence)
        assert (folder.path / "plan.md").read_text() == "milk\nbread\nmilk and honey\n"

    def test_places_that_overlap_are_two(self, folder: Folder) -> None:
        (folder.path / "plan.md").write_text("aaa")
        with pytest.raises(Refusal, match="found 2 times"):
            writing.edit(folder, "plan.md", "aa", "b")

    def test_lines_that_end_as_windows_has_them_stay_so(self, folder: Folder) -> None:
        (folder.path / "plan.md").write_bytes(b"one\r\ntwo\r\nthree\r\n")
        assert "2: two\r" in reading.read(folder, "plan.md").text
        writing.edit(folder, "plan.md", "one\ntwo", "1\n2")
        assert (folder.path / "plan.md").read_bytes() == b"1\r\n2\r\nthree\r\n"

    def test_what_is_too_large_or_no_text_is_not_edited(self, folder: Folder) -> None:
        (folder.path / "large").write_text("x" * 1_000_001)
        (folder.path / "odd.bin").write_bytes(b"\0x")
        with pytest.raises(Refusal, match=r"^large has 1,000,001 bytes and may have 1,000,000: change it with a com"):
            writing.edit(folder, "large", "y", "z")
        with pytest.raises(Refusal, match=r"^odd.bin is not text: 2 bytes, application/octet-stream.$"):
            writing.edit(folder, "odd.bin", "x", "z")


def test_nothing_is_written_into_a_full_folder(store: Store) -> None:
    small = Store(store.root, Quota(bytes=10_000, files=5))
    with small.folder("alice", "full") as folder:
        writing.write(folder, "a", "x" * 5_000)
        for size in (5_001, 10_001):
            with pytest.raises(Refusal) as refused:
                writing.write(folder, "b", "x" * size)
            assert str(refused.value) == (
                "The folder would have more than 10,000 bytes, which is the most: remove some files first."
            )
        for name in ("b", "c", "d", "e"):
            writing.write(folder, name, "x")
        with pytest.raises(Refusal, match=r"^The folder would have more than 5 files, which is the most"):
            writing.write(folder, "f", "x")
        assert sorted(os.listdir(folder.path)) == ["a", "b", "c", "d", "e"]


def test_no_path_makes_a_folder_too_deep_to_be_counted(folder: Folder) -> None:
    with pytest.raises(Refusal, match=r"^A path may go through 63 directories, and this one goes through more"):
        writing.write(folder, "d/" * 64 + "a", "x")
    writing.write(folder, "d/" * 63 + "a", "x")
    writing.write(folder, "b", "there is still room")


def test_only_a_file_is_deleted_and_nothing_behind_a_link(folder: Folder, tmp_path: Path) -> None:
    (tmp_path / "kept").write_text("kept")
    writing.write(folder, "sub/a.txt", "x")
    (folder.path / "link").symlink_to(tmp_path / "kept")
    (folder.path / "outside").symlink_to(tmp_path)
    os.mkfifo(folder.path / "fifo")
    for path, sentence in (
        *(
            ("link", "symbolic link"),
            ("outside/kept", "symbolic link"),
            ("fifo", "is a FIFO"),
            ("sub", "is a directory"),
        ),
        *(
            ("none", "There is no none"),
            ("", "is a directory"),
            ("../x", "cannot be used"),
            ("sub/a.txt/b", "no directory"),
        ),
    ):
        with pytest.raises(Refusal, match=sentence):
            writing.delete(folder, path)
    assert sorted(os.listdir(folder.path)) == ["fifo", "link", "outside", "sub"]
    writing.delete(folder, "sub/a.txt")
    assert os.listdir(folder.path / "sub") == []
    assert (tmp_path / "kept").read_text() == "kept"
