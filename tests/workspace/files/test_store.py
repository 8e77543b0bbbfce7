"""Whose folder is where, what it may hold, and how it goes."""

import os
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from common.environment import SettingsInvalid
from common.tool_server.errors import CallError
from workspace.files import listing, quota, walking, writing
from workspace.files.folder import Folder, Store
from workspace.files.quota import Amount, Quota
from workspace.results import CallResult, find_result, store_result


@pytest.mark.parametrize("user", ["bob", "../alice", "a" * 200])
def test_folder_of_a_user_can_be_entered_by_nobody_else(store: Store, user: str) -> None:
    with store.open_folder("alice", "cnv_1") as other, store.open_folder(user, "cnv_1") as folder:
        writing.write_file(other, "a.md", "x")
        assert os.listdir(folder.path) == []
        assert {path.stat().st_mode & 0o777 for path in (folder.path, folder.path.parent)} == {0o700}
        assert user not in str(folder.path)


def test_who_only_looks_makes_none(store: Store) -> None:
    with store.open_existing("alice", "cnv_1") as folder:
        assert folder is None
    assert store.list_names("alice") == []


@pytest.mark.parametrize("mode", [0o755, 0o710])
def test_a_directory_that_others_may_enter_is_not_used(tmp_path: Path, mode: int) -> None:
    tmp_path.chmod(mode)
    with pytest.raises(SettingsInvalid, match="must be a directory that the workspace's account owns"):
        Store(tmp_path, Quota(1, 1)).prepare()


def test_what_was_left_half_done_is_cleared_away(store: Store, folder: Folder) -> None:
    (store.root / ".incoming/half").write_text("x")
    (store.root / ".removed/gone/deep").mkdir(parents=True)
    store.prepare()
    assert not [*(store.root / ".incoming").iterdir(), *(store.root / ".removed").iterdir()]


def deep(folder: Folder, levels: int) -> None:
    """As a command makes it: from each directory the next."""
    here = os.dup(folder.descriptor)
    for _ in range(levels):
        os.mkdir("d", dir_fd=here)
        below = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)


def test_everything_is_removed_however_deep_and_whatever_its_modes(store: Store, tmp_path: Path) -> None:
    (tmp_path / "kept").write_text("kept")
    with store.open_folder("alice", "cnv_1") as folder:
        deep(folder, 1_500)  # more than Python calls itself
        (folder.path / "locked/in").mkdir(parents=True)
        (folder.path / "locked/in/file").touch()
        (folder.path / "link").symlink_to(tmp_path)
        for path in ("locked/in", "locked"):
            (folder.path / path).chmod(0)
    assert store.remove("alice", "cnv_1")
    assert not store.remove("alice", "cnv_1")
    assert not [*(store.root / ".removed").iterdir()]
    assert (tmp_path / "kept").read_text() == "kept"


def test_a_folder_is_counted_however_deep_it_is(store: Store) -> None:
    with store.open_folder("alice", "cnv_1") as folder:
        deep(folder, 3_000)
        (folder.path / "e").mkdir()
        assert quota.measure(folder.path).files == 3_001
    store.remove("alice")


def test_allocated_blocks_and_sizes_count(folder: Folder) -> None:
    with (folder.path / "sparse").open("wb") as file:
        file.truncate(5_000_000)
    (folder.path / "small").write_bytes(b"x")
    assert 5_000_001 < quota.measure(folder.path).bytes < 5_100_000
    with (folder.path / "beyond its end").open("wb") as file:
        command = ["fallocate", "--keep-size", "--length", "3000000", f"/proc/self/fd/{file.fileno()}"]
        subprocess.run(command, pass_fds=[file.fileno()], check=True)
    assert 8_000_001 < quota.measure(folder.path).bytes < 8_200_000


def test_what_a_mode_hides_is_counted(store: Store) -> None:
    quota = Quota(bytes=100_000, files=100)
    with store.open_folder("alice", "cnv_1") as folder:
        hidden = folder.path / "hidden"
        hidden.mkdir()
        (hidden / "large").write_bytes(b"x" * 100_000)
        hidden.chmod(0)
        with pytest.raises(CallError, match="100,000 bytes"):
            quota.check(folder.path)


def test_all_folders_of_a_person_hold_so_much_together(store: Store) -> None:
    small = Store(store.root, Quota(bytes=100_000, files=10, of_user=Amount(bytes=150_000, files=15)))
    with (
        small.open_folder("alice", "one") as one,
        small.open_folder("alice", "two") as two,
        small.open_folder("bob", "one") as bobs,
    ):
        writing.write_bytes(one, "a", b"x" * 90_000)
        writing.write_bytes(two, "a", b"x" * 50_000)
        with pytest.raises(CallError, match=r"^The storage of all your conversations is full: its limit is 150,000 b"):
            writing.write_bytes(two, "b", b"x" * 20_000)
        writing.write_bytes(bobs, "a", b"x" * 90_000)
        writing.write_bytes(one, "a", b"x" * 5_000)  # where the older one was counted, too
        writing.write_bytes(two, "b", b"x" * 20_000)
        (one.path / "hidden").mkdir(mode=0)
        for number in range(8):
            (one.path / f"n{number}").touch()
        small.quota.check(one.path)  # as after each command
        with pytest.raises(CallError, match=r"its limit is 15 files"):
            for number in range(8):
                writing.write_bytes(two, f"n{number}", b"")
        assert len(list(two.path.iterdir())) == 5
        small.quota.check(two.path)
        with pytest.raises(CallError, match=r"its limit is 15 files"):
            small.quota.check(two.path, more=Amount(0, 1))
        store.remove("alice", "one")
        writing.write_bytes(two, "more", b"")


def test_a_directory_that_is_moved_while_it_is_read_leads_nowhere(folder: Folder, tmp_path: Path) -> None:
    deep(folder, 100)
    (folder.path / "other").mkdir()
    walk = walking.walk_tree(folder.descriptor)
    below = next(entry for entry in walk if len(entry.parents) == 80)
    moved = folder.path / Path(*below.parents[:70])
    moved.rename(folder.path / "other/moved")
    with pytest.raises(walking.DirectoryMoved):
        list(walk)


def test_a_list_is_sorted_and_has_an_end(folder: Folder) -> None:
    for name in ("b.md", "a/inner/x.md", ".git/config"):
        (folder.path / name).parent.mkdir(parents=True, exist_ok=True)
        (folder.path / name).write_text(name)
    (folder.path / "odd\nname").touch()
    os.symlink("nowhere", folder.path / "link")
    assert listing.list_directory(folder).text.splitlines() == [".git/", "a/", "b.md", "link", "odd?name"]
    assert listing.list_directory(folder, depth=2).text.splitlines() == [
        ".git/",
        "a/",
        "a/inner/",
        "b.md",
        "link",
        "odd?name",
    ]
    assert listing.list_directory(folder, "a", depth=3).text.splitlines() == ["a/inner/", "a/inner/x.md"]
    entries = {entry["path"]: entry for entry in listing.list_directory(folder).details["entries"]}
    assert (entries["b.md"]["kind"], entries["b.md"]["size"], entries["link"]["kind"]) == ("file", 4, "link")
    assert [file["path"] for file in listing.list_files(folder)["files"]] == ["a/inner/x.md", "b.md", "odd\nname"]
    for number in range(600):
        (folder.path / f"n{number}").touch()
    answer = listing.list_directory(folder)
    assert len(answer.text.splitlines()) == 501
    assert answer.text.endswith("(Only the first 500 are shown. List a single directory to see more.)")
    assert answer.details["more"] is True
    assert len(listing.list_changes({}, listing.list_states(folder))) == 100


def test_a_call_that_is_sent_again_is_told_what_it_was_told(folder: Folder) -> None:
    asked = {"tool": "write_file", "path": "a"}
    assert find_result(folder.results, "key", asked) is None
    store_result(folder.results, "key", asked, CallResult("Done.", {"created": True}))
    assert find_result(folder.results, "key", asked) == ("Done.", {"created": True})
    with pytest.raises(CallError, match=r"^This idempotency key was used by an earlier call with other arguments"):
        find_result(folder.results, "key", {**asked, "path": "b"})
    for number in range(250):
        store_result(folder.results, f"key-{number}", asked, CallResult("Done.", {}))
    assert len(list(folder.results.iterdir())) == 200
    assert find_result(folder.results, "key", asked) is None
    assert find_result(folder.results, "key-249", asked)
    store_result(folder.results, "large", asked, CallResult("x" * 20_000_000, {}))
    assert len(list(folder.results.iterdir())) == 1


def test_folders_that_nobody_uses_go(store: Store) -> None:
    """Whatever a command in them says about its times."""
    for name in ("old", "used"):
        with store.open_folder("alice", name) as folder:
            writing.write_file(folder, "a", "x")
            os.utime(folder.path, (2e9, 2e9) if name == "old" else (1, 1))
    (old,) = (store.root / ".answers").glob("*/old")
    os.utime(old, (1e9, 1e9))
    assert store.remove_unused(before=time.time() - 86_400) == 1
    assert store.list_names("alice") == ["used"]


def test_results_that_are_stored_at_once_are_all_stored(folder: Folder) -> None:
    call = {"tool": "write_file", "path": "a"}

    def store(number: int) -> None:
        store_result(folder.results, f"key-{number}", call, CallResult("Done.", {}))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(store, range(700)))
    assert find_result(folder.results, "key-699", call)


def test_nothing_is_left_of_a_user_without_folders(store: Store) -> None:
    with store.open_folder("alice", "cnv_1"), store.open_folder("alice", "cnv_2"):
        pass
    store.remove("alice", "cnv_1")
    assert store.list_names("alice") == ["cnv_2"]
    assert store.remove_unused(before=time.time() + 1) == 1
    assert not list(store.root.glob("[0-9a-f]*"))
    assert not list((store.root / ".answers").iterdir())
