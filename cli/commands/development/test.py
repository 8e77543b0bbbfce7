import argparse
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from enum import StrEnum
from pathlib import Path
from typing import BinaryIO

from cli import terminal
from cli.arguments import Commands, add_command
from cli.data_dir import CHECKOUT
from cli.processes.children import die_with_parent

STYLE = {"ruff check": ["ruff", "check"], "ruff format": ["ruff", "format", "--check"]}
IMPORTS = {"lint-imports": ["lint-imports"]}
TYPES = {"pyright": ["pyright"]}
# A file stays with one process, because its tests share fixtures; tests/conftest.py puts the longest files first. Tests
# often wait, for processes, pages and times, so there is one more than there are processors.
_PROCESSES = min((os.cpu_count() or 1) + 1, 4)
# A process that hangs is ended, and the run with it: pytest-xdist 3.8 may wait for its replacement without end.
_PARALLEL = f"--numprocesses {_PROCESSES} --dist loadfile --no-loadscope-reorder --max-worker-restart 0".split()
QUICK = ["-m", "not long and not extended", *_PARALLEL]
ALL = ["-m", "not extended", *_PARALLEL]
EXTENDED = ["-m", "extended"]  # one after the other: some measure times


class Scope(StrEnum):
    QUICK = "quick"
    ALL = "all"
    EXTENDED = "extended"


def add(commands: Commands) -> None:
    parser = add_command(
        commands,
        "test",
        run,
        "check the code and run the tests",
        "Checks the code and runs the tests on a temporary PostgreSQL, or in separate databases on the server of "
        "DATABASE_URL. Further arguments go to pytest.",
        has_data_dir=False,
        usage="todo test [-h] [--all | --extended] [pytest arguments]",
    )
    parser.set_defaults(scope="quick", takes_more=True)
    scopes = parser.add_mutually_exclusive_group()
    for scope, purpose in (
        (Scope.ALL, "also run pyright and the slow tests, as CI does"),
        (Scope.EXTENDED, "run only the tests that --all leaves out: measurements and long runs, for a release"),
    ):
        scopes.add_argument(f"--{scope}", action="store_const", dest="scope", const=scope, help=purpose)


def run(arguments: argparse.Namespace) -> int:
    return check(Scope(arguments.scope), arguments.more)


def check(scope: Scope, pytest_arguments: Sequence[str], *, tools: Path = Path(sys.executable).parent) -> int:
    """Returns 0 if all checks and tests passed, else 1."""
    failed: list[str] = []
    match scope:
        case Scope.QUICK:
            failed = _check(STYLE | IMPORTS, tools)
            passed = _passes("pytest", tools, ["pytest", *QUICK, *pytest_arguments])
        case Scope.ALL:
            failed = _check(STYLE, tools)
            failed_meanwhile, passed = _check_and_test(IMPORTS | TYPES, tools, ["pytest", *ALL, *pytest_arguments])
            failed += failed_meanwhile
        case Scope.EXTENDED:
            passed = _passes("pytest", tools, ["pytest", *EXTENDED, *pytest_arguments])
    return 0 if passed and not failed else 1


def _check(checks: Mapping[str, Sequence[str]], tools: Path) -> list[str]:
    """Returns the names of the checks that failed."""
    failed = [name for name, command in checks.items() if not _passes(name, tools, command)]
    if failed:
        terminal.error(f"These checks failed before the tests ran: {', '.join(failed)}")
    return failed


def _check_and_test(checks: Mapping[str, Sequence[str]], tools: Path, tests: Sequence[str]) -> tuple[list[str], bool]:
    """Runs the checks while the tests run, and prints their output afterwards.

    Returns the names of the checks that failed, and whether the tests passed.
    """
    failed: list[str] = []
    with ExitStack() as stack:
        started: dict[str, tuple[subprocess.Popen[bytes], BinaryIO]] = {}
        for name, command in checks.items():
            output = stack.enter_context(tempfile.TemporaryFile())
            started[name] = stack.enter_context(_start(tools, command, output)), output
        passed = _passes("pytest", tools, tests)
        for name, (process, output) in started.items():
            terminal.heading(f"== {name}")
            if process.wait() != 0:
                terminal.error(f"These checks failed while the tests ran: {name}")
                failed.append(name)
            output.seek(0)
            terminal.copy(output)
    return failed, passed


def _passes(name: str, tools: Path, command: Sequence[str]) -> bool:
    terminal.heading(f"== {name}")
    process = _start(tools, command)
    try:
        return process.wait() == 0
    except KeyboardInterrupt:
        process.wait()  # Ctrl-C reached it too, and it has things to clear away
        raise


def _start(tools: Path, command: Sequence[str], output: BinaryIO | None = None) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [tools / command[0], *command[1:]],
        cwd=CHECKOUT,
        stdout=output,
        stderr=output and subprocess.STDOUT,
        preexec_fn=die_with_parent(signal.SIGTERM),
    )
