import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO

from cli import terminal
from cli.data_dir import CHECKOUT
from cli.processes.children import die_with_parent

STYLE = {"ruff check": ["ruff", "check"], "ruff format": ["ruff", "format", "--check"]}
IMPORTS = {"lint-imports": ["lint-imports"]}
TYPES = {"pyright": ["pyright"]}


# A file stays with one process, for what is started for all of it; tests/conftest.py puts the longest files first. They
# wait much, for processes, pages and times, so there is one more than there are processors.
_PROCESSES = min((os.cpu_count() or 1) + 1, 4)
_AT_ONCE = ["--numprocesses", f"{_PROCESSES}", "--dist", "loadfile", "--no-loadscope-reorder"]
QUICK = ["-m", "not long", *_AT_ONCE]
TOGETHER = ["-m", "not alone", *_AT_ONCE]
ALONE = ["-m", "alone"]
AGAIN = ["-m", "not alone", "--last-failed", "--last-failed-no-failures", "none", "--exitfirst"]
MARKED_ALONE = re.compile(r"""\bmark\.alone\b|add_marker\(\s*["']alone""")
SOME_FAILED, NOTHING_SELECTED = 1, 5  # pytest's exit statuses


def run(*, everything: bool, pytest_arguments: list[str], tools: Path = Path(sys.executable).parent) -> int:
    """Not 0 if any part failed; pytest comes last, so that its summary ends the output."""
    before = STYLE if everything else STYLE | IMPORTS
    failed = [name for name, command in before.items() if _status(name, tools, command) != 0]
    if failed:
        terminal.error(f"failed before the tests: {', '.join(failed)}")
    if everything:
        failed_beside, together = _beside(IMPORTS | TYPES, tools, ["pytest", *TOGETHER, *pytest_arguments])
        failed += failed_beside
        if together == SOME_FAILED:
            together = _again_alone(tools)
        alone = ["pytest", *ALONE, *(pytest_arguments or marked_alone(CHECKOUT / "tests"))]
        statuses = {together, _status("pytest", tools, alone)}
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


def marked_alone(tests: Path) -> list[str]:
    """The files in which the mark is written: to collect all the others takes seconds."""
    return sorted(str(file) for file in tests.rglob("*.py") if MARKED_ALONE.search(file.read_text()))


def _beside(checks: Mapping[str, Sequence[str]], tools: Path, tests: Sequence[str]) -> tuple[list[str], int]:
    """Which of the checks failed, and the tests' status.

    They use what tests leave of the processors; what they say comes after the tests.
    """
    failed: list[str] = []
    with ExitStack() as stack:
        started: dict[str, tuple[subprocess.Popen[bytes], BinaryIO]] = {}
        for name, command in checks.items():
            said = stack.enter_context(tempfile.TemporaryFile())
            started[name] = stack.enter_context(_start(tools, command, said)), said
        together = _status("pytest", tools, tests)
        for name, (process, said) in started.items():
            terminal.heading(f"== {name}")
            if process.wait() != 0:
                terminal.error(f"failed beside the tests: {name}")
                failed.append(name)
            said.seek(0)
            terminal.copy(said)
    return failed, together


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
