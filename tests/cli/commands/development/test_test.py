import os
from pathlib import Path

import pytest

from cli.commands.development import test as command
from tests.conftest import ROOT

TOOL = """#!/bin/sh
echo "${0##*/} $*"
[ "${0##*/}" != "$FAILING" ]
"""
STYLE = ["== ruff check", "ruff check", "== ruff format", "ruff format --check"]
IMPORTS = ["== lint-imports", "lint-imports "]


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
ALONE = f"pytest -m alone {' '.join(command.marked_alone(ROOT / 'tests'))}"


@pytest.mark.parametrize("failing", ["ruff", "lint-imports", "pyright", "pytest"])
def test_any_part_that_fails_fails_the_whole_and_pytest_still_has_the_last_word(tools, monkeypatch, capfd, failing):
    monkeypatch.setenv("FAILING", failing)
    assert command.run(everything=True, pytest_arguments=[], tools=tools) == 1
    output, errors = capfd.readouterr()
    assert output.endswith(f"== pytest\n{ALONE}\n")
    place = "before" if failing == "ruff" else "beside"
    assert (f"failed {place} the tests: {failing}" in errors) == (failing != "pytest")


def test_without_all_the_long_ones_are_left_out(tools, capfd):
    assert command.run(everything=False, pytest_arguments=["-k", "name", "tests/cli"], tools=tools) == 0
    assert capfd.readouterr().out.splitlines() == [*STYLE, *IMPORTS, "== pytest", f"{QUICK} -k name tests/cli"]


def test_all_leaves_nothing_out(tools, capfd):
    assert command.run(everything=True, pytest_arguments=["-x"], tools=tools) == 0
    alone = ["== pytest", "pytest -m alone -x"]
    said = capfd.readouterr().out.splitlines()
    assert said == [*STYLE, "== pytest", f"{TOGETHER} -x", *IMPORTS, "== pyright", "pyright ", *alone]


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("@pytest.mark.alone", True),
        ("pytestmark = [pytest.mark.long, pytest.mark.alone, pytest.mark.asyncio]", True),
        ("pytest.param(1, marks=mark.alone),", True),
        ("item.add_marker('alone')", True),
        ("@pytest.mark.long  # it runs alone", False),
        ("@pytest.mark.alonely", False),
    ],
)
def test_a_file_with_the_mark_is_found(tmp_path: Path, line: str, found: bool) -> None:
    (tmp_path / "room").mkdir()
    file = tmp_path / "room" / "test_it.py"
    file.write_text(f"import pytest\n\n{line}\n")
    assert command.marked_alone(tmp_path) == ([str(file)] if found else [])


def test_the_mark_is_written_where_the_tests_are() -> None:
    """One that a file of helpers gave to tests elsewhere would leave those out."""
    names = [Path(file).name for file in command.marked_alone(ROOT / "tests")]
    assert [name for name in names if not name.startswith("test_")] == []
    assert "test_abuse.py" in names


@pytest.mark.parametrize("check", ["lint-imports", "pyright"])
def test_imports_and_types_are_checked_while_the_tests_run(tools, capfd, check):
    met = tools / "met"
    os.mkfifo(met)  # who writes waits for who reads
    (tools / check).write_text(f"#!/bin/sh\necho checks > {met}\n")
    (tools / "pytest").write_text(f'#!/bin/sh\n[ "$2" = alone ] || cat {met}\n')
    assert command.run(everything=True, pytest_arguments=[], tools=tools) == 0
    assert capfd.readouterr().out.splitlines()[len(STYLE) :][:2] == ["== pytest", "checks"]


def test_what_is_compiled_is_kept(tools, monkeypatch, capfd):
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    (tools / "pytest").write_text('#!/bin/sh\necho "${PYTHONDONTWRITEBYTECODE-kept}"\n')
    assert command.run(everything=False, pytest_arguments=[], tools=tools) == 0
    assert capfd.readouterr().out.splitlines() == [*STYLE, *IMPORTS, "== pytest", "kept"]


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
    assert runs == [TOGETHER, once_more, ALONE]
    assert ("passed alone" in errors) == (again == 0)


def test_a_run_that_was_broken_off_is_not_run_again(tools, capfd):
    (tools / "pytest").write_text('#!/bin/sh\necho "pytest $*"\ncase "$*" in *--numprocesses*) exit 2;; esac\n')
    assert command.run(everything=True, pytest_arguments=[], tools=tools) == 1
    assert "--last-failed" not in capfd.readouterr().out


@pytest.mark.parametrize(("quick", "alone", "result"), [(5, 0, 0), (0, 5, 0), (5, 5, 1), (0, 1, 1), (1, 5, 1)])
def test_what_was_asked_for_may_be_in_one_part_only(tools, quick, alone, result):
    (tools / "pytest").write_text(f'#!/bin/sh\n[ "$2" = alone ] && exit {alone}\nexit {quick}\n')
    assert command.run(everything=True, pytest_arguments=["tests/cli"], tools=tools) == result
