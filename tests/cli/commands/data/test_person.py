"""`./todo export` and `forget`, as far as they need no service; the rest is in tests/test_round_trip.py."""

import os
import pty
import subprocess

import pytest


@pytest.fixture
def todo(start, shared_dir):
    """What `./todo` with these arguments says, and its exit status; there is no database."""

    def run(*arguments: str, directory=shared_dir / "data", **options) -> tuple[str, int]:
        kept = {name: value for name, value in os.environ.items() if name != "DATABASE_URL"} | {"NO_COLOR": "1"}
        process = start("-m", "cli", *arguments, "--data-dir", str(directory), env=kept, **options)
        output, _ = process.communicate(timeout=60)
        return output, process.returncode

    return run


@pytest.mark.parametrize(
    "command",
    [
        ["usage"],
        ["calendar", "--user", "alice"],
        ["export", "--user", "alice"],
        ["export", "--user", "alice", "--format", "jsonl"],
        ["forget", "--user", "alice", "--yes"],
    ],
)
def test_without_a_database_none_is_made(todo, shared_dir, command):
    output, status = todo(*command)
    place = shared_dir / "data"
    assert output == f"error: There is no database in {place} yet: ./todo up makes one, or set DATABASE_URL.\n"
    assert status == 1
    assert not place.exists()


@pytest.mark.parametrize("option", ["--output", "--files"])
@pytest.mark.parametrize("name", ["alice.json", "link.json", "."])
def test_what_is_there_is_not_written_over(todo, shared_dir, name, option):
    before = shared_dir / "alice.json"
    before.write_text("last year's")
    (shared_dir / "link.json").symlink_to(before)
    output, status = todo("export", "--user", "alice", option, str(shared_dir / name))
    place = (shared_dir / name).resolve()
    assert output == f"error: {place} exists already: choose another file, or remove it first.\n"
    assert status == 1
    assert before.read_text() == "last year's"


def test_one_file_cannot_hold_both(todo, shared_dir):
    place = str(shared_dir / "alice")
    output, status = todo("export", "--user", "alice", "--output", place, "--files", place)
    assert (output, status) == ("error: Give --output and --files two different files.\n", 1)


@pytest.mark.parametrize("wrong", [["--thread", "thr_1"], ["--format", "jsonl", "--files", "alice.tar"]])
def test_what_does_not_go_together_is_refused(todo, wrong):
    output, status = todo("export", "--user", "alice", *wrong)
    assert "needs --format" in output
    assert status == 2


def test_without_a_terminal_to_ask_on_nothing_is_deleted(todo):
    output, status = todo("forget", "--user", "alice", stdin=subprocess.DEVNULL)
    assert output == "error: There is no terminal to ask on: add --yes to delete everything of alice for good.\n"
    assert status == 1


@pytest.mark.parametrize("answer", [b"n\n", b"\n", b"what\n", b"\x04"])
def test_who_does_not_say_yes_keeps_everything(todo, answer):
    ours, theirs = pty.openpty()
    os.write(ours, answer)
    output, status = todo("forget", "--user", "alice", stdin=theirs)
    os.close(theirs)
    os.close(ours)
    question = "Delete all tasks, conversations and files of alice for good? [y/N] "
    assert output == question + "error: Nothing was deleted.\n"
    assert status == 1


def test_who_says_yes_is_taken_at_the_word(todo):
    ours, theirs = pty.openpty()
    os.write(ours, b"y\n")
    output, _ = todo("forget", "--user", "alice", stdin=theirs)
    os.close(theirs)
    os.close(ours)
    assert "There is no database in" in output, "it went on"


@pytest.mark.parametrize("name", ["", b"\xff"])
def test_a_name_that_nobody_can_have_is_refused(todo, name):
    output, status = todo("export", "--user", name)
    assert "is nobody's name" in output
    assert status == 2


def test_a_directory_that_cannot_be_looked_into_is_one_sentence(todo):
    place = "/" + "a" * 300
    output, status = todo("usage", directory=place)
    assert output == f"error: The data directory {place} cannot be read: File name too long.\n"
    assert status == 1
