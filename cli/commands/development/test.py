import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from cli import terminal
from cli.data_dir import CHECKOUT
from cli.processes.children import die_with_parent

CHECKS = {
    "ruff check": ["ruff", "check"],
    "ruff format": ["ruff", "format", "--check"],
    "lint-imports": ["lint-imports"],
}
TYPES = ["pyright"]


# A file stays with one process, for what is started for all of it; tests/conftest.py puts the longest files first. They
# wait much, for processes, pages and times, so there is one more than there are processors.
_PROCESSES = min((os.cpu_count() or 1) + 1, 4)
_AT_ONCE = ["--numprocesses", f"{_PROCESSES}", "--dist", "loadfile", "--no-loadscope-reorder"]
QUICK = ["-m", "not long", *_AT_ONCE]
TOGETHER = ["-m", "not alone", *_AT_ONCE]
ALONE = ["-m", "alone"]
AGAIN = ["-m", "not alone", "--last-failed", "--last-failed-no-failures", "none", "--exitfirst"]
SOME_FAILED, NOTHING_SELECTED = 1, 5  # pytest's exit statuses


def run(*, everything: bool, pytest_arguments: list[str], tools: Path = Path(sys.executable).parent) -> int:
    """Not 0 if any part failed; pytest comes last, so that its summary ends the output."""
    failed = [name for name, command in CHECKS.items() if _status(name, tools, command) != 0]
    if failed:
        terminal.error(f"failed before the tests: {', '.join(failed)}")
    if everything:
        types, together = _beside_types(tools, ["pytest", *TOGETHER, *pytest_arguments])
        failed += [name for name in TYPES if types != 0]
        if together == SOME_FAILED:
            together = _again_alone(tools)
        statuses = {together, _status("pytest", tools, ["pytest", *ALONE, *pytest_arguments])}
    else:
        statuses = {_status("pytest", tools, ["pytest", *QUICK, *pytest_arguments])}
    if pytest_arguments and 0 in statuses:
        statuses.discard(NOTHING_SELECTED)  # what was asked for may all be in the other part
    return 0 if statuses == {0} and not failed else 1


def _again_alone(tools: Path) -> int:
    """The status of what failed beside other tests, without them: one that waits may have got no processor in time."""
    status = _status("pytest again, alone: what failed beside others", tools, ["pytest", *AGAIN])
    if status == 0:
        terminal.warn("failed beside other tests, and passed alone: see above which, and mend them")
    return SOME_FAILED if status == NOTHING_SELECTED else status


def _beside_types(tools: Path, tests: Sequence[str]) -> tuple[int, int]:
    """The statuses of both. The type checker uses what tests leave of the processors; what it says comes after them."""
    with tempfile.TemporaryFile() as said, _start(tools, TYPES, said) as types:
        together = _status("pytest", tools, tests)
        terminal.heading("== pyright")
        if types.wait() != 0:
            terminal.error("failed beside the tests: pyright")
        said.seek(0)
        terminal.copy(said)
        return types.returncode, together


def _status(name: str, tools: Path, command: Sequence[str]) -> int:
    terminal.heading(f"== {name}")
    process = _start(tools, command)
    try:
        return process.wait()
    except KeyboardInterrupt:
        process.wait()  # Ctrl-C reached it too, and it has things to clear away
        raise


def _start(tools: Path, command: Sequence[str], output: BinaryIO | None = None) -> subprocess.Popen[bytes]:
    # Tests start hundreds of processes: what is compiled for one is kept for the next, whatever is set outside.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return subprocess.Popen(
        [tools / command[0], *command[1:]],
        cwd=CHECKOUT,
        env=environment,
        stdout=output,
        stderr=output and subprocess.STDOUT,
        preexec_fn=die_with_parent(signal.SIGTERM),
    )
