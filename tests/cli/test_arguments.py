"""What `./todo` answers to wrong arguments, and to a machine without data: a status and a sentence."""

import os
import pty
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cli.__main__ import parse
from tests.conftest import ROOT, find_free_port
from tests.support.commands import todo
from tests.waiting import WAIT_SECONDS

USER = ("--user", "alice")

WRONG: list[tuple[tuple[str, ...], str]] = [
    ((), "usage: todo"),
    (("up", "--prot", "1"), "--prot"),
    (("up", "--workers", "2"), "--workers"),
    (("up", "--data-dir", "", "--port", "0"), "--data-dir"),
    *((("up", f"--port={port}"), f"{port} is not a port from 1 to 65535") for port in ("+80", "8_000", "65536")),
    *(((command, *USER, f"--days={days}"), "--days") for command in ("usage", "token") for days in ("0", "1.5")),
    (("token", *USER, "--days=99999999999"), "--days"),
    (("token", *USER, "--days=3651"), "--days"),
    (("token", *USER, "--scope=all"), "--scope"),
    (("token", "--user", "a\nb"), "--user"),
    (("logs", "frontend"), "frontend"),
    (("mcp",), "ACTION"),
    (("mcp", "list", "web"), "web"),
    (("mcp", "approve"), "SERVER, TOOL"),
    (("mcp", "test", "web", "say"), "say"),
    (("export", "--user", ""), "--user"),
    (("chat", "--temp", "3"), "3 is not a number from 0 to 2"),
    (("chat", "--temp", "nan"), "nan is not a number from 0 to 2"),
    *((("chat", "--thread", name), "is not a valid id or name of a conversation") for name in ("../x", "openapi.json")),
    (("chat", "--url", "ftp://x"), "the address of the page"),
    (("chat", "--directory", "/nothing"), "/nothing is not a directory"),
]


@pytest.mark.parametrize(("arguments", "named"), WRONG, ids=[" ".join(arguments) for arguments, _ in WRONG])
def test_wrong_arguments(arguments: tuple[str, ...], named: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        parse(arguments)
    output, errors = capsys.readouterr()
    assert (ended.value.code, output) == (2, "")
    assert named in errors
    if arguments:
        [sentence] = errors.splitlines()
        assert sentence.startswith("error: ")


@pytest.mark.parametrize(
    "arguments",
    [
        ("up", "--prot", "1"),
        ("export", *USER, "--thread", "thr_1"),
        ("export", *USER, "--format", "jsonl", "--files", "alice.tar"),
    ],
    ids=" ".join,
)
def test_wrong_arguments_end_the_process(arguments: tuple[str, ...]) -> None:
    done = todo(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert "Traceback" not in done.stderr
    assert done.stderr.startswith("error: ")


def test_option_between_the_names_of_a_command(tmp_path: Path) -> None:
    for options in (
        ("mcp", "approve", "--data-dir", str(tmp_path), "web"),
        ("mcp", "--data-dir", str(tmp_path), "approve", "web", "say"),
    ):
        done = todo(*options)
        assert (done.returncode, f"There is no database in {tmp_path} yet." in done.stderr) == (1, True)


@pytest.mark.parametrize("argument", ["caf\udce9.csv", "--user=caf\udce9", "caf\udce9"])
def test_argument_that_is_not_utf8(argument: str) -> None:
    done = todo("import", argument)
    assert (done.returncode, done.stdout) == (2, "")
    [sentence] = done.stderr.splitlines()
    assert "is not UTF-8 text: " in sentence
    assert "caf\ufffd" in sentence


@pytest.mark.parametrize("name", ["LLM_MODEL", "LLM_API_KEY"])
def test_setting_that_is_not_utf8(name: str) -> None:
    nowhere = {"LLM_PROVIDER": "custom", "LLM_BASE_URL": "http://127.0.0.1:9/v1", "LLM_MODEL": "x", name: "caf\udce9"}
    done = todo("models", "--check", **nowhere)
    assert (done.returncode, done.stdout) == (os.EX_CONFIG, "")
    assert f"environment: {name} is not UTF-8 text.\n" in done.stderr


def test_version() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert todo("--version").stdout == f"{version}\n"


def test_tests_say_first_how_long_they_take(start: Callable[..., subprocess.Popen[str]]) -> None:
    process = start("-P", "-m", "cli", "test", env=os.environ | {"PYTHONPATH": str(ROOT)})
    assert process.stdout
    assert process.stdout.readline() == "This takes about 4 minutes with two processors.\n"


class TestWithoutData:
    """There is no database; none is made, and nothing is written."""

    @pytest.fixture
    def directory(self, tmp_path: Path) -> Path:
        return tmp_path / "data"

    def failed(self, directory: Path, *arguments: str, **options: Any) -> str:
        done = todo(*arguments, "--data-dir", str(directory), **options)
        assert done.returncode == 1
        assert "Traceback" not in done.stderr
        assert not directory.exists()
        [line] = done.stderr.splitlines()
        return line

    @pytest.mark.parametrize(
        "command",
        [
            ("usage",),
            ("calendar", *USER),
            ("export", *USER),
            ("export", *USER, "--format", "jsonl"),
            ("forget", *USER, "--yes"),
            ("forget", *USER),  # there is no terminal to ask on
            ("logs", "backend"),
            ("export", *USER, "--output", "same", "--files", "same"),
        ],
        ids=" ".join,
    )
    def test_command(self, directory: Path, command: tuple[str, ...]) -> None:
        assert self.failed(directory, *command).startswith("error: ")

    @pytest.mark.parametrize(
        ("option", "name"),
        [("--output", "there.json"), ("--output", "link.json"), ("--output", "."), ("--files", "there.json")],
    )
    def test_file_that_is_there(self, directory: Path, tmp_path: Path, option: str, name: str) -> None:
        there = tmp_path / "there.json"
        there.write_text("last year's")
        (tmp_path / "link.json").symlink_to(there)
        assert self.failed(directory, "export", *USER, option, str(tmp_path / name)).startswith("error: ")
        assert there.read_text() == "last year's"

    @pytest.mark.parametrize(("answer", "goes_on"), [(b"n\n", False), (b"\n", False), (b"\x04", False), (b"y\n", True)])
    def test_forget_asks_first(self, directory: Path, answer: bytes, goes_on: bool) -> None:
        ours, theirs = pty.openpty()
        os.write(ours, answer)
        try:
            text = self.failed(directory, "forget", *USER, stdin=theirs)
        finally:
            os.close(theirs)
            os.close(ours)
        assert ("database" in text) is goes_on


@pytest.mark.parametrize("command", ["status", "down"])
def test_data_of_another_account(tmp_path: Path, command: str) -> None:
    """Whether something runs there cannot be seen."""
    tmp_path.chmod(0)
    run = "import os, sys; from cli.__main__ import main; os.getuid() or os.setuid(65534); sys.exit(main())"
    done = subprocess.run(
        [sys.executable, "-P", "-c", run, command, "--data-dir", str(tmp_path)],
        env=os.environ | {"PYTHONPATH": str(ROOT), "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        timeout=WAIT_SECONDS,
        check=False,
    )
    tmp_path.chmod(0o700)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("error: ")
    assert done.stderr.endswith("Permission denied.\n")


class TestLogs:
    @pytest.fixture
    def directory(self, tmp_path: Path) -> Path:
        (tmp_path / "logs").mkdir()
        (tmp_path / "logs/backend.log").write_text("".join(f"line {number}\n" for number in range(100)))
        (tmp_path / "logs/postgres.log").write_text("ready\n")
        return tmp_path

    def test_end_of_each(self, directory: Path) -> None:
        lines = todo("logs", "--data-dir", str(directory)).stdout.splitlines()
        assert lines[0].split() == ["backend", "|", "line", "80"]
        assert lines[-1].split() == ["postgres", "|", "ready"]
        assert todo("logs", "postgres", "--data-dir", str(directory)).stdout == "ready\n"

    def test_followed(self, directory: Path, start: Any) -> None:
        log = directory / "logs/backend.log"
        log.write_text("first\n")
        following = start("-m", "cli", "logs", "backend", "--follow", "--data-dir", str(directory))
        assert following.stdout.readline() == "first\n"
        with log.open("a") as file:
            file.write("second\n")
        assert following.stdout.readline() == "second\n"
        log.replace(directory / "logs/backend.log.old")  # as at the next start
        log.write_text("third\n")
        assert following.stdout.readline() == "third\n"
        os.truncate(log, 0)  # as when it has become large
        with log.open("a") as file:
            file.write("4\n")
        assert following.stdout.readline() == "4\n"
        following.send_signal(2)
        assert following.wait(WAIT_SECONDS) == 130

    def test_followed_until_the_reader_goes(self, directory: Path, start: Any) -> None:
        log = directory / "logs/backend.log"
        options = ("-m", "cli", "logs", "backend", "--follow", "--data-dir", str(directory))
        following = start(*options, stderr=subprocess.PIPE)
        assert following.stdout.readline() == "line 80\n"
        following.stdout.close()
        with log.open("a") as file:
            file.write("last\n")
        assert following.wait(WAIT_SECONDS) == 141
        assert following.stderr.read() == ""


@pytest.mark.parametrize("module", ["pathlib", "argparse"])
def test_interrupt_during_an_import(tmp_path: Path, module: str) -> None:
    (tmp_path / f"{module}.py").write_text("import os\nos.kill(os.getpid(), 2)\n")
    environment = os.environ | {"PYTHONPATH": f"{tmp_path}:{ROOT}"}
    command = [sys.executable, "-P", "-m", "cli.entry", "status"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=WAIT_SECONDS, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (-2, "", "")


@pytest.mark.long(seconds=5)
@pytest.mark.parametrize(
    "command",
    [("--version",), ("chat", "--help"), (), ("status",), ("models",), ("chat", "--exec", "list"), ("usage",)],
    ids=" ".join,
)
def test_standard_streams_that_are_closed_or_full(command: tuple[str, ...], tmp_path: Path) -> None:
    here = ("--data-dir", str(tmp_path / "none")) if command and command[-1] in ("status", "list", "usage") else ()
    settings = {"LLM_PROVIDER": "offline", "BACKEND_PORT": str(find_free_port())}

    def run(redirection: str) -> tuple[int, str, str]:
        done = todo(*command, *here, redirection=redirection, **settings)
        return done.returncode, done.stdout, done.stderr

    status, output, errors = run("")
    assert run("<&-") == (status, output, errors)
    assert run("2>&-") == run("2>/dev/full") == (status, output, "")
    assert run(">&-") == (status, "", errors)
    assert run("<&- >&- 2>&-") == (status, "", "")
    lost = (1, "", "error: The output cannot be written: No space left on device.\n")
    assert run(">/dev/full") == (lost if output else (status, "", errors))
    assert run(">/dev/full 2>&1") == (1 if output else status, "", "")


@pytest.mark.parametrize("name", ["nothing.txt", ".", "x" * 300])
def test_file_to_import_that_cannot_be_opened(tmp_path: Path, name: str) -> None:
    done = todo("import", str(tmp_path / name), "--user", "alice")
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
