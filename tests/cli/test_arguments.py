"""What `./todo` says to who types it wrong."""

import tomllib

import pytest

from cli.__main__ import main
from tests.conftest import ROOT


@pytest.fixture
def said(monkeypatch, capsys):
    def run(*arguments: str) -> tuple[str, int | str | None]:
        monkeypatch.setattr("sys.argv", ["todo", *arguments])
        try:
            status = main()
        except SystemExit as end:
            status = end.code
        return capsys.readouterr().err, status

    return run


def test_alone_it_tells_what_it_can_do(said):
    errors, status = said()
    assert "run everything on this machine until Ctrl-C" in errors
    assert status == 2


def test_an_unknown_argument_names_the_help_that_lists_the_known_ones(said):
    errors, status = said("up", "--prot", "1")
    assert errors.endswith("unrecognized arguments: --prot 1 (see ./todo up --help)\n")
    assert status == 2


def test_no_directory_is_not_this_one(said):
    errors, status = said("up", "--data-dir", "", "--port", "0")
    assert "argument --data-dir: it is empty" in errors
    assert status == 2


@pytest.mark.parametrize("command", ["usage", "token"])
@pytest.mark.parametrize("days", ["-1", "0", "1.5", "99999999999"])
def test_a_number_of_days_that_cannot_be_is_one_sentence(said, command, days):
    errors, status = said(command, "--user", "alice", f"--days={days}")
    assert status == 2
    assert errors == (
        f"error: argument --days: {days} is no number of days from 1 to 36500 (see ./todo {command} --help)\n"
    )


def test_a_log_of_nobody_is_refused_with_the_names_that_there_are(said):
    errors, status = said("logs", "frontend")
    assert status == 2
    assert errors.startswith("error: argument service: there is no service frontend: it is one of backend, mcp-server")


def test_the_version_is_that_of_the_project(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["todo", "--version"])
    with pytest.raises(SystemExit, match="0"):
        main()
    assert capsys.readouterr().out == tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"] + "\n"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("mcp",), "the following arguments are required: action"),
        (("mcp", "list", "web"), "mcp list takes nothing more"),
        (("mcp", "approve"), "mcp approve needs the name of a server: ./todo mcp list shows them"),
        (("mcp", "test"), "mcp test needs the name of a server: ./todo mcp list shows them"),
        (("mcp", "test", "web", "say"), "mcp test takes one server and nothing more"),
    ],
)
def test_what_is_asked_of_other_servers_is_checked(said, arguments, sentence):
    errors, status = said(*arguments)
    assert status == 2
    assert errors.startswith(f"error: {sentence}")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--repeat", "0"), "argument --repeat: 0 is no number from 1 to 100"),
        (("--limit-rpm", "-5"), "argument --limit-rpm: -5 is no number above 0"),
        (("--price-in", "nan"), "argument --price-in: nan is no number above 0"),
        (("--resume", "nowhere.json"), "nowhere.json holds no results: ./todo eval --json FILE writes some."),
        (("--compare", "nowhere.json", "x"), "nowhere.json holds no results: ./todo eval --json FILE writes some."),
    ],
)
def test_what_cannot_be_evaluated_is_one_sentence(said, arguments, sentence):
    errors, status = said("eval", *arguments)
    assert status in (1, 2)
    assert errors.startswith(f"error: {sentence}")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--seconds", "5"), "bench --seconds needs --load"),
        (("--load", "--soak", "5"), "bench takes one of --load and --soak"),
        (("--full", "--show", "x"), "bench takes one of --full and --show"),
        (("--show", "nowhere.json"), "nowhere.json holds no figures: ./todo bench --json FILE writes some."),
    ],
)
def test_what_cannot_be_measured_is_one_sentence(said, arguments, sentence):
    errors, status = said("bench", *arguments)
    assert status in (1, 2)
    assert errors.startswith(f"error: {sentence}")
