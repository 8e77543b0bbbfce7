import signal
import subprocess
import sys
from pathlib import Path

from cli import terminal
from cli.data_dir import CHECKOUT
from cli.processes import die_with_parent

CHECKS = {
    "ruff check": ["ruff", "check"],
    "ruff format": ["ruff", "format", "--check"],
    "lint-imports": ["lint-imports"],
}
LONG_CHECKS = {"pyright": ["pyright"]}


def run(*, everything: bool, pytest_arguments: list[str], tools: Path = Path(sys.executable).parent) -> int:
    """Not 0 if any part failed; pytest is the last one, so that its summary ends the output."""
    checks = CHECKS | LONG_CHECKS if everything else CHECKS
    failed = [name for name, command in checks.items() if not _passes(name, tools, command)]
    if failed:
        terminal.error(f"failed before the tests: {', '.join(failed)}")
    selection = [] if everything else ["-m", "not long"]
    passed = _passes("pytest", tools, ["pytest", *selection, *pytest_arguments])
    return 0 if passed and not failed else 1


def _passes(name: str, tools: Path, command: list[str]) -> bool:
    terminal.heading(f"== {name}")
    process = subprocess.Popen(
        [tools / command[0], *command[1:]], cwd=CHECKOUT, preexec_fn=die_with_parent(signal.SIGTERM)
    )
    try:
        return process.wait() == 0
    except KeyboardInterrupt:
        process.wait()  # Ctrl-C reached it too, and it has things to clear away
        raise
