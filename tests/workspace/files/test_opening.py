"""What a command may leave in a folder leads the file tools nowhere else, and holds nobody up."""

import os
import shutil
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from service.tool_server.refusals import Refusal
from workspace.files import listing, opening, reading, writing
from workspace.files.folder import Folder

RULE = (
    "cannot be used: give names with / between them, from the folder on as in notes/plan.md, without a / before them, "
    "without .. and control characters, at most 255 bytes each and 1,000 in all."
)
INVALID = [
    *("..", "../x", "a/../../x", "/etc/passwd", "/", "a\0b", "a\nb", "a\x1b[2Jb", "x" * 256, "é" * 128),
    *("/".join(["x" * 200] * 6), "a\u2028b"),
]
SECRET = "the secret of somebody else\n"


@pytest.mark.parametrize("path", INVALID)
def test_a_path_that_cannot_be_used_is_one_sentence(folder: Folder, path: str) -> None:
    for use in USES.values():
        with pytest.raises(Refusal) as refused:
            use(folder, path)
        assert str(refused.value).endswith(RULE)
        assert str(refused.value).isprintable()
    assert os.listdir(folder.path) == []


@pytest.mark.parametrize(("path", "names"), [(".", ()), ("", ()), ("./a//b/", ("a", "b")), ("ä/日", ("ä", "日"))])
def test_other_spellings_of_a_path(path: str, names: tuple[str, ...]) -> None:
    assert opening.names(path) == names


USES: dict[str, Callable[[Folder, str], object]] = {
    "read": reading.read,
    "write": lambda folder, path: writing.write(folder, path, "mine\n"),
    "edit": lambda folder, path: writing.edit(folder, path, "secret", "secret!"),
}
use = pytest.mark.parametrize("use", USES.values(), ids=USES)


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    directory = tmp_path / "outside"
    directory.mkdir()
    (directory / "secret").write_text(SECRET)
    return directory


def made(kind: str, place: Path, outside: Path) -> None:
    match kind:
        case "link to a file":
            place.symlink_to(outside / "secret")
        case "link to nothing":
            place.symlink_to(outside / "fresh")
        case "link to itself":
            place.symlink_to(place.name)
        case "FIFO":
            os.mkfifo(place)
        case "socket":
            with socket.socket(socket.AF_UNIX) as listening:
                os.chdir(place.parent)  # a socket's path is short
                listening.bind(place.name)
        case _:
            place.mkdir()


_LINK = "odd is, or lies behind, a symbolic link, which is not followed: name the file that it leads to."
SENTENCES = {
    **dict.fromkeys(("link to a file", "link to nothing", "link to itself"), _LINK),
    "FIFO": "odd is a FIFO and no file: only files can be read and written.",
    "socket": "odd is a socket and no file: only files can be read and written.",
    "directory": "odd is a directory and no file: only files can be read and written.",
}


@use
@pytest.mark.parametrize("kind", SENTENCES)
def test_what_is_no_file_is_neither_read_nor_replaced(
    folder: Folder,
    outside: Path,
    kind: str,
    use: Callable[[Folder, str], object],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)
    made(kind, folder.path / "odd", outside)
    before = (folder.path / "odd").lstat()
    with pytest.raises(Refusal) as refused:
        use(folder, "odd")
    assert str(refused.value) == SENTENCES[kind]
    assert (folder.path / "odd").lstat().st_ino == before.st_ino
    assert {path.name: path.read_text() for path in outside.iterdir()} == {"secret": SECRET}


@use
def test_nothing_lies_behind_a_linked_directory(
    folder: Folder, outside: Path, use: Callable[[Folder, str], object]
) -> None:
    (folder.path / "door").symlink_to(outside)
    for path in ("door/secret", "door/fresh", "door/below/fresh"):
        with pytest.raises(Refusal, match=r"^door(/\S+)? is, or lies behind, a symbolic link"):
            use(folder, path)
    with pytest.raises(Refusal, match="symbolic link"):
        listing.names(folder, "door")
    assert listing.names(folder, depth=3).text == "door"
    assert {path.name: path.read_text() for path in outside.iterdir()} == {"secret": SECRET}


def test_a_hard_link_to_a_file_of_somebody_else(folder: Folder, outside: Path) -> None:
    theirs = outside / "secret"
    if os.getuid() == 0:
        os.chown(theirs, 12_345, 12_345)
    else:  # the system makes none
        theirs = Path("/etc/passwd")
    with suppress(OSError):
        os.link(theirs, folder.path / "mine")
    with pytest.raises(Refusal, match=r"mine cannot be used: it does not belong|There is no mine"):
        reading.read(folder, "mine")


def test_a_file_below_a_file(folder: Folder) -> None:
    (folder.path / "a.md").write_text("a")
    with pytest.raises(Refusal) as refused:
        writing.write(folder, "a.md/b", "b")
    assert str(refused.value) == "a.md is a file and no directory: nothing can be in it."


def test_nobody_waits_for_a_fifo(folder: Folder) -> None:
    os.mkfifo(folder.path / "odd")
    done = threading.Event()

    def read() -> None:
        with suppress(Refusal):
            reading.read(folder, "odd")
        done.set()

    threading.Thread(target=read, daemon=True).start()
    assert done.wait(10)


@use
def test_what_is_replaced_meanwhile_leads_nowhere_else(
    folder: Folder, outside: Path, use: Callable[[Folder, str], object]
) -> None:
    """A command puts a link that leads out in the place of a directory, and back, again and again."""
    door, aside = folder.path / "door", folder.path / "aside"
    door.mkdir()
    (door / "secret").write_text("my secret\n")
    over = threading.Event()

    def swap() -> None:
        while not over.is_set():
            with suppress(OSError):
                door.rename(aside)
                door.symlink_to(outside)
                door.unlink()
            if not door.is_symlink():
                shutil.rmtree(door, ignore_errors=True)  # as a write has made it again
            with suppress(OSError):
                aside.rename(door)

    swapping = threading.Thread(target=swap)
    swapping.start()
    done, refused, end = 0, 0, time.monotonic() + 0.5
    try:
        while time.monotonic() < end:
            try:
                told = use(folder, "door/secret")
                done += 1
                assert SECRET.strip() not in str(told)
            except Refusal:
                refused += 1
    finally:
        over.set()
        swapping.join()
    assert done
    assert refused
    assert {path.name: path.read_text() for path in outside.iterdir()} == {"secret": SECRET}
