import os

import pytest

from cli.commands.development import test as command

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


AT_ONCE = f"--numprocesses {min((os.cpu_count() or 1) + 1, 4)} --dist loadfile --no-loadscope-reorder"
QUICK = f"pytest -m not long {AT_ONCE}"
TOGETHER = f"pytest -m not alone {AT_ONCE}"


@pytest.mark.parametrize("failing", ["ruff", "lint-imports", "pyright", "pytest"])
def test_any_part_that_fails_fails_the_whole_and_pytest_still_has_the_last_word(tools, monkeypatch, capfd, failing):
    monkeypatch.setenv("FAILING", failing)
    assert command.run(everything=True, pytest_arguments=[], tools=tools) == 1
    output, errors = capfd.readouterr()
    assert output.endswith("== pytest\npytest -m alone\n")
    place = "beside" if failing == "pyright" else "before"
    assert (f"failed {place} the tests: {failing}" in errors) == (failing != "pytest")


def test_without_all_the_long_ones_are_left_out(tools, capfd):
    assert command.run(everything=False, pytest_arguments=["-k", "name", "tests/cli"], tools=tools) == 0
    assert capfd.readouterr().out.splitlines() == [*CHECKS, "== pytest", f"{QUICK} -k name tests/cli"]


def test_all_leaves_nothing_out(tools, capfd):
    assert command.run(everything=True, pytest_arguments=["-x"], tools=tools) == 0
    alone = ["== pytest", "pytest -m alone -x"]
    said = capfd.readouterr().out.splitlines()
    assert said == [*CHECKS, "== pytest", f"{TOGETHER} -x", "== pyright", "pyright ", *alone]


def test_types_are_checked_while_the_tests_run(tools, capfd):
    met = tools / "met"
    os.mkfifo(met)  # who writes waits for who reads
    (tools / "pyright").write_text(f"#!/bin/sh\necho types > {met}\n")
    (tools / "pytest").write_text(f'#!/bin/sh\n[ "$2" = alone ] || cat {met}\n')
    assert command.run(everything=True, pytest_arguments=[], tools=tools) == 0
    assert capfd.readouterr().out.splitlines() == [*CHECKS, "== pytest", "types", "== pyright", "== pytest"]


def test_what_is_compiled_is_kept(tools, monkeypatch, capfd):
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    (tools / "pytest").write_text('#!/bin/sh\necho "${PYTHONDONTWRITEBYTECODE-kept}"\n')
    assert command.run(everything=False, pytest_arguments=[], tools=tools) == 0
    assert capfd.readouterr().out.splitlines() == [*CHECKS, "== pytest", "kept"]


@pytest.mark.parametrize(("again", "result"), [(0, 0), (1, 1), (5, 1), (2, 1)])
def test_what_failed_beside_others_is_run_once_more_alone(tools, capfd, again, result):
    (tools / "pytest").write_text(f"""#!/bin/sh
echo "pytest $*"
case "$*" in *--last-failed*) exit {again};; *--numprocesses*) exit 1;; esac
""")
    assert command.run(everything=True, pytest_arguments=[], tools=tools) == result
    output, errors = capfd.readouterr()
    once_more = "pytest -m not alone --last-failed --last-failed-no-failures none --exitfirst"
    runs = [line for line in output.splitlines() if line.startswith("pytest")]
    assert runs == [TOGETHER, once_more, "pytest -m alone"]
    assert ("passed alone" in errors) == (again == 0)


def test_a_run_that_was_broken_off_is_not_run_again(tools, capfd):
    (tools / "pytest").write_text('#!/bin/sh\necho "pytest $*"\ncase "$*" in *--numprocesses*) exit 2;; esac\n')
    assert command.run(everything=True, pytest_arguments=[], tools=tools) == 1
    assert "--last-failed" not in capfd.readouterr().out


@pytest.mark.parametrize(("quick", "alone", "result"), [(5, 0, 0), (0, 5, 0), (5, 5, 1), (0, 1, 1), (1, 5, 1)])
def test_what_was_asked_for_may_be_in_one_part_only(tools, quick, alone, result):
    (tools / "pytest").write_text(f'#!/bin/sh\n[ "$2" = alone ] && exit {alone}\nexit {quick}\n')
    assert command.run(everything=True, pytest_arguments=["tests/cli"], tools=tools) == result
