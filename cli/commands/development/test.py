import signal
import subprocess
import sys
from pathlib import Path

from cli import terminal
from cli.data_dir import CHECKOUT
from cli.processes.children import die_with_parent

CHECKS = {
    "ruff check": ["ruff", "check"],
    "ruff format": ["ruff", "format", "--check"],
    "lint-imports": ["lint-imports"],
}
LONG_CHECKS = {"pyright": ["pyright"]}


_AT_ONCE = ["--numprocesses", "auto", "--maxprocesses", "4", "--dist", "loadfile"]
QUICK = ["-m", "not long", *_AT_ONCE]
LONG = ["-m", "long and not alone", *_AT_ONCE]
ALONE = ["-m", "alone"]
NOTHING_SELECTED = 5  # pytest's exit status


def run(*, everything: bool, pytest_arguments: list[str], tools: Path = Path(sys.executable).parent) -> int:
    """Not 0 if any part failed; pytest comes last, so that its summary ends the output."""
    checks = CHECKS | LONG_CHECKS if everything else CHECKS
    failed = [name for name, command in checks.items() if _status(name, tools, command) != 0]
    if failed:
        terminal.error(f"failed before the tests: {', '.join(failed)}")
    parts = [QUICK, LONG, ALONE] if everything else [QUICK]
    statuses = {_status("pytest", tools, ["pytest", *part, *pytest_arguments]) for part in parts}
    if pytest_arguments and 0 in statuses:
        statuses.discard(NOTHING_SELECTED)  # what was asked for may all be in the other part
    return 0 if statuses == {0} and not failed else 1


def _status(name: str, tools: Path, command: list[str]) -> int:
    terminal.heading(f"== {name}")
    process = subprocess.Popen(
        [tools / command[0], *command[1:]], cwd=CHECKOUT, preexec_fn=die_with_parent(signal.SIGTERM)
    )
    try:
        return process.wait()
    except KeyboardInterrupt:
        process.wait()  # Ctrl-C reached it too, and it has things to clear away
        raise
