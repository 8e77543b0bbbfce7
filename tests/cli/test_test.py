import pytest

from cli import test as command

TOOL = """#!/bin/sh
echo "${0##*/} $*"
[ "${0##*/}" != "$FAILING" ]
"""
CHECKS = ["== ruff check", "ruff check", "== ruff format", "ruff format --check", "== lint-imports", "lint-imports "]


@pytest.fixture
def tools(tmp_path):
    """Stand-ins that say how they were called."""
    for name in ("ruff", "lint-imports", "pyright", "pytest"):
        (tmp_path / name).write_text(TOOL)
        (tmp_path / name).chmod(0o755)
    return tmp_path


@pytest.mark.parametrize("failing", ["ruff", "lint-imports", "pyright", "pytest"])
def test_any_part_that_fails_fails_the_whole_and_pytest_still_has_the_last_word(tools, monkeypatch, capfd, failing):
    monkeypatch.setenv("FAILING", failing)
    assert command.run(everything=True, pytest_arguments=[], tools=tools) == 1
    output, errors = capfd.readouterr()
    assert output.endswith("== pytest\npytest \n")
    assert ("failed before the tests: " + failing in errors) == (failing != "pytest")


def test_without_all_the_long_ones_are_left_out(tools, capfd):
    assert command.run(everything=False, pytest_arguments=["-k", "name", "tests/cli"], tools=tools) == 0
    assert capfd.readouterr().out.splitlines() == [*CHECKS, "== pytest", "pytest -m not long -k name tests/cli"]


def test_all_leaves_nothing_out(tools, capfd):
    assert command.run(everything=True, pytest_arguments=["-x"], tools=tools) == 0
    assert capfd.readouterr().out.splitlines() == [*CHECKS, "== pyright", "pyright ", "== pytest", "pytest -x"]
