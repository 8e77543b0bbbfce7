"""What `./todo` says to who types it wrong."""

import pytest

from cli.__main__ import main


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
