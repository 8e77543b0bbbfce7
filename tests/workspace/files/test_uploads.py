"""Which files are their person's own, whatever was done in the folder since."""

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from common.tool_server.errors import CallError
from workspace.files import listing, uploads, walking, writing
from workspace.files.folder import Folder, Store
from workspace.files.quota import Quota


@pytest.fixture
def apart(store: Store) -> Iterator[Folder]:
    with store.open_folder("alice", "cnv_1.researcher") as opened:
        yield opened


def put_in(folder: Folder, path: str, content: str) -> None:
    """As the API does."""
    writing.write_bytes(folder, path, content.encode())
    uploads.record(folder, path, hashlib.sha256(content.encode()).hexdigest())


def contents(folder: Folder) -> dict[str, str]:
    return {one["path"]: (folder.path / one["path"]).read_text() for one in listing.list_files(folder)["files"]}


def test_only_what_is_as_its_person_put_it_in_is_given(folder: Folder, apart: Folder, tmp_path: Path) -> None:
    for name in (
        "a.txt",
        "sub/b.txt",
        "appended",
        "edited",
        "removed",
        "linked",
        "fifo",
        "directory/x",
        "odd ä\U0001f600",
    ):
        put_in(folder, name, f"mine: {name}")
    put_in(folder, "./sub//c.txt", "mine")
    writing.write_file(folder, "of_an_agent", "x")
    writing.write_file(folder, "edited", "of an agent")
    with (folder.path / "appended").open("a") as file:
        file.write("as a command does")
    (tmp_path / "outside").write_text("mine: linked")
    for name in ("removed", "linked", "fifo"):
        (folder.path / name).unlink()
    (folder.path / "linked").symlink_to(tmp_path / "outside")
    os.mkfifo(folder.path / "fifo")
    (folder.path / "directory").rename(folder.path / "elsewhere")
    (folder.path / "directory").symlink_to("elsewhere")
    expected = {name: f"mine: {name}" for name in ("a.txt", "odd ä\U0001f600", "sub/b.txt")} | {"sub/c.txt": "mine"}
    assert uploads.copy(folder, apart) == sorted(expected)
    assert contents(apart) == {f"uploads/{name}": text for name, text in expected.items()}

    (apart.path / "uploads/a.txt").write_text("changed by who was given it")
    (apart.path / "own.txt").write_text("its own")
    (apart.path / "uploads/sub").rename(apart.path / "uploads/deep")
    (apart.path / "uploads/deep").chmod(0)
    put_in(folder, "edited", "mine again")
    (folder.path / "sub/b.txt").unlink()
    del expected["sub/b.txt"]
    expected["edited"] = "mine again"
    uploads.copy(folder, apart)
    assert contents(apart) == {f"uploads/{name}": text for name, text in expected.items()} | {"own.txt": "its own"}
    assert (folder.path / "a.txt").read_text() == "mine: a.txt"

    for name in ("link", "file"):
        walking.remove_tree(apart.descriptor, "uploads")
        if name == "link":
            (apart.path / "uploads").symlink_to(tmp_path)
        else:
            (apart.path / "uploads").write_text("in the way")
        assert uploads.copy(folder, apart) == sorted(expected)
        assert (apart.path / "uploads/a.txt").read_text() == "mine: a.txt"
    assert [*tmp_path.iterdir()] == [tmp_path / "outside"]


def test_what_is_known_of_them_goes_with_the_folder_and_has_an_end(store: Store, folder: Folder, apart: Folder) -> None:
    for number in range(1_010):
        uploads.record(folder, f"n{number}", hashlib.sha256(b"x").hexdigest())
    kept = [*(store.root / ".uploads").glob("*/cnv_1/*")]
    assert len(kept) == 1_000
    put_in(folder, "a", "x")
    assert uploads.copy(folder, apart) == ["a"]
    store.remove("alice", "cnv_1")
    assert not [*(store.root / ".uploads").glob("*/cnv_1")]
    with store.open_folder("alice", "cnv_1") as made_anew:
        writing.write_file(made_anew, "a", "x")
        assert uploads.copy(made_anew, apart) == []


def test_where_there_is_no_room_for_them_it_is_said(store: Store, folder: Folder) -> None:
    put_in(folder, "a", "x" * 100)
    small = Store(store.root, Quota(bytes=50, files=10))
    with (
        small.open_folder("alice", "other") as other,
        pytest.raises(CallError, match=r"^The folder is full: its limit is 50 b"),
    ):
        uploads.copy(folder, other)
