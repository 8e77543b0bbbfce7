"""The tools that run something, in the first confinement that works here."""

import asyncio
import os
import tempfile
from itertools import accumulate
from pathlib import Path

import pytest

from tests.waiting import until
from tests.workspace.accounts import accounts, done_as
from tests.workspace.kinds import made, usable
from workspace.commands import errors
from workspace.commands.running import TOO_MUCH
from workspace.commands.tools import Commands
from workspace.files import quota

PERSON = "a person"


@pytest.fixture
def commands() -> Commands:
    return Commands(made(usable()[0]))


async def test_without_a_confinement_each_tool_says_what_to_install(tmp_path: Path) -> None:
    commands = Commands(None)
    for call in (
        commands.run_command(PERSON, tmp_path, "true"),
        commands.run_python(PERSON, tmp_path, "1"),
        commands.search_files(PERSON, tmp_path, "x"),
        commands.commit(PERSON, tmp_path, "x"),
    ):
        with pytest.raises(errors.NoConfinement, match="installs bubblewrap"):
            await call


async def test_a_command_is_a_line_of_the_shell(commands: Commands, tmp_path: Path) -> None:
    answer = await commands.run_command(PERSON, tmp_path, "echo 'a  b' | cat > f; cat < f; echo no >&2; false")
    assert answer.text.startswith("Exit code 1 after ")
    assert answer.text.endswith(" s.\nstdout:\na  b\nstderr:\nno")
    assert answer.details["exit_code"] == 1
    assert (answer.details["stdout"], answer.details["stderr"]) == ("a  b\n", "no\n")


async def test_unconfined_it_runs_nothing_that_an_agent_has_laid_ready_at_home(tmp_path: Path) -> None:
    commands = Commands(made("none"))
    for name in (".profile", ".bash_profile", ".bashrc"):
        (tmp_path / name).write_text("touch planted\n")
    where = "import site; print(site.getusersitepackages().partition('/.local/')[2])"
    site = (await commands.run_python(PERSON, tmp_path, where)).details["stdout"].strip()
    customised = tmp_path / ".local" / site / "usercustomize.py"
    customised.parent.mkdir(parents=True)
    customised.write_text("open('planted', 'w')\n")
    (tmp_path / ".gitconfig").write_text("[core]\nfsmonitor = touch planted; false\n")
    await commands.run_command(PERSON, tmp_path, "python3 -c 1")
    await commands.run_python(PERSON, tmp_path, "1")
    assert (await commands.commit(PERSON, tmp_path, "all of it")).text.startswith("Committed as ")
    assert not (tmp_path / "planted").exists()


def test_a_folder_that_a_command_has_closed_is_open_for_the_next_one() -> None:
    """Of whoever is not root, whom nothing is closed to."""

    async def work() -> list[int]:
        with tempfile.TemporaryDirectory() as folder:
            commands = Commands(made(usable()[0]))
            answers = [await commands.run_command(PERSON, Path(folder), line) for line in ("chmod 000 .", "touch f")]
        return [answer.details["exit_code"] for answer in answers]

    assert done_as(list(accounts().values())[-1], work) == [0, 0]


async def test_python_runs_in_the_folder_and_imports_from_it(commands: Commands, tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text("number = 6 * 7")
    answer = await commands.run_python(PERSON, tmp_path, "import own\nprint(own.number)\n1 / 0")
    assert answer.details["stdout"] == "42\n"
    assert "line 3" in answer.details["stderr"]
    assert answer.details["exit_code"] == 1
    assert os.listdir(tmp_path) == ["own.py"]


async def test_lines_are_found_by_pattern_place_and_name(commands: Commands, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a b.py").write_text("first\nsecond: 12:30\n")
    (tmp_path / "c.txt").write_text("second\n" + "second" * 1_000)
    (tmp_path / "binary").write_bytes(b"second\0")
    found = await commands.search_files(PERSON, tmp_path, "^sec(ond|to)", glob="*.py")
    assert found.text == "in/a b.py:2: second: 12:30"
    assert found.details["hits"] == [{"path": "in/a b.py", "line": 2, "text": "second: 12:30"}]
    assert len((await commands.search_files(PERSON, tmp_path, "second")).details["hits"]) == 3
    assert len((await commands.search_files(PERSON, tmp_path, "second", "c.txt")).text) < 600
    assert (await commands.search_files(PERSON, tmp_path, "-e nothing")).text == "No line matches."


async def test_only_the_first_hits_are_answered(commands: Commands, tmp_path: Path) -> None:
    (tmp_path / "many").write_text("hit\n" * 1_000)
    found = await commands.search_files(PERSON, tmp_path, "hit")
    assert len(found.details["hits"]) == 200
    assert found.text.endswith("many:200: hit\n[there are more: search for less, or in less]")


@pytest.mark.parametrize("path", ["/etc", "..", "in/../.."])
async def test_a_search_stays_in_the_folder(commands: Commands, tmp_path: Path, path: str) -> None:
    with pytest.raises(errors.PathInvalid):
        await commands.search_files(PERSON, tmp_path, "x", path)


async def test_a_search_that_cannot_be_says_why(commands: Commands, tmp_path: Path) -> None:
    with pytest.raises(errors.SearchFailed, match="Unmatched"):
        await commands.search_files(PERSON, tmp_path, "(")
    with pytest.raises(errors.SearchFailed, match="No such file"):
        await commands.search_files(PERSON, tmp_path, "x", "missing")


async def test_all_of_the_folder_is_committed(commands: Commands, tmp_path: Path) -> None:
    (tmp_path / "f").write_text("x")
    message = '"It\'s" $(touch made) `touch made`\n\n-m x'
    committed = await commands.commit(PERSON, tmp_path, message)
    assert committed.text == f"Committed as {committed.details['commit']}."
    log = await commands.run_command(PERSON, tmp_path, "git log --format='%h %an%n%B' && git status --short")
    assert log.details["stdout"].strip() == f"{committed.details['commit']} todo-assistant\n{message}"
    with pytest.raises(errors.CommitFailed, match="no change since the last commit"):
        await commands.commit(PERSON, tmp_path, "again")


@pytest.mark.parametrize("left", ["index.lock", "HEAD.lock", "config.lock", "refs/heads/main.lock", "HEAD"])
async def test_what_a_killed_git_has_left_keeps_nothing_from_being_committed(
    commands: Commands, tmp_path: Path, left: str
) -> None:
    if left != "HEAD":
        (tmp_path / "a.txt").write_text("a")
        await commands.commit(PERSON, tmp_path, "first")
        (tmp_path / ".git" / left).touch()
    else:  # of a repository that was being made
        (tmp_path / ".git" / "refs").mkdir(parents=True)
    (tmp_path / "b.txt").write_text("b")
    assert (await commands.commit(PERSON, tmp_path, "second")).details["commit"]


async def test_what_a_hook_of_the_folder_does_it_does_confined(commands: Commands, tmp_path: Path) -> None:
    (tmp_path / "f").write_text("x")
    await commands.commit(PERSON, tmp_path, "first")
    hook = tmp_path / ".git" / "hooks" / "pre-commit"
    hook.write_text("#!/bin/sh\ncat /etc/passwd\necho refused by the hook >&2\nexit 1\n")
    hook.chmod(0o755)
    (tmp_path / "f").write_text("y")
    with pytest.raises(errors.CommitFailed, match="refused by the hook"):
        await commands.commit(PERSON, tmp_path, "second")


@pytest.mark.parametrize(
    ("command", "timeout_s", "sentence"),
    [
        ("a\0b", 1, "command must be text, without NUL"),
        ("\ud800", 1, "command must be text"),
        ("x" * 100_001, 1, "command must be at most 100,000 bytes"),
        ("true", 0, "timeout_s must be 1 to 600 seconds"),
        ("true", 601, "timeout_s must be 1 to 600 seconds"),
    ],
)
async def test_what_cannot_be_run_is_refused(
    commands: Commands, tmp_path: Path, command: str, timeout_s: int, sentence: str
) -> None:
    with pytest.raises(errors.ArgumentInvalid, match=sentence):
        await commands.run_command(PERSON, tmp_path, command, timeout_s)


async def test_a_stop_from_elsewhere_ends_it_with_what_was_said(commands: Commands, tmp_path: Path) -> None:
    assert not commands.stop(tmp_path)
    running = asyncio.create_task(commands.run_command(PERSON, tmp_path, "echo before; touch begun; sleep 100"))
    await until((tmp_path / "begun").exists)
    assert commands.stop(tmp_path)
    answer = await running
    assert (answer.details["stdout"], answer.details["stopped"]) == ("before\n", True)
    assert not commands.stop(tmp_path)


async def test_in_a_folder_that_holds_too_much_one_can_delete_but_not_go_on(tmp_path: Path) -> None:
    commands = Commands(made(usable()[0]), check=lambda folder: "too much" if (folder / "much").exists() else None)
    (tmp_path / "much").touch()
    more = await commands.run_command(PERSON, tmp_path, "head -c 5000000 /dev/zero > more; stat -c %s more")
    assert more.details["stdout"] == f"{1024**2}\n"
    assert more.details["stderr"].endswith("[too much]")
    less = await commands.run_command(PERSON, tmp_path, "rm more much")
    assert (less.details["exit_code"], less.details["stderr"]) == (0, "")


async def test_in_a_folder_that_holds_too_much_nobody_goes_on_in_many_files(tmp_path: Path) -> None:
    commands = Commands(made(usable()[0]), check=lambda _: "too much", held=quota.held)
    script = "for i in $(seq 2000); do head -c 100000 /dev/zero > f$i; sleep .02; done"
    more = await commands.run_command(PERSON, tmp_path, script)
    assert more.details["exit_code"] == TOO_MUCH
    assert 0 < len(os.listdir(tmp_path)) < 1_500
    less = await commands.run_command(PERSON, tmp_path, "rm f*; sleep 2.5")
    assert less.details["exit_code"] == 0


@pytest.mark.long
@pytest.mark.parametrize("kind", usable())
async def test_of_forty_commands_of_two_people_each_has_at_most_four_at_once(kind: str, tmp_path: Path) -> None:
    commands = Commands(made(kind), at_once=4)
    asked = [(f"person {number % 2}", tmp_path / str(number)) for number in range(40)]
    for _, folder in asked:
        folder.mkdir()
    script = "date +%s.%N; ls -a ..; sleep 0.1; date +%s.%N"
    answers = await asyncio.gather(*(commands.run_command(person, folder, script) for person, folder in asked))
    times: dict[str, list[tuple[float, int]]] = {"person 0": [], "person 1": []}
    for (person, _), answer in zip(asked, answers, strict=True):
        first, *between, last = answer.details["stdout"].splitlines()
        times[person] += [(float(first), 1), (float(last), -1)]
        assert not {str(number) for number in range(40)} & set(between)
    for changes in times.values():
        running = list(accumulate(change for _, change in sorted(changes)))
        assert 1 < max(running) <= 4
        assert running[-1] == 0
