import argparse
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from cli import terminal
from cli.arguments import Commands, add_command
from cli.data_dir import CHECKOUT
from cli.processes.children import die_with_parent

CHECKS = {
    "ruff check": ["ruff", "check"],
    "ruff format": ["ruff", "format", "--check"],
    "lint-imports": ["lint-imports"],
}
TYPES = {"pyright": ["pyright"]}
# A file stays with one process, because its tests share fixtures; tests/conftest.py puts the longest files first. Tests
# often wait, for processes, pages and times, so there is one more than there are processors.
_PROCESSES = min((os.cpu_count() or 1) + 1, 4)
# A process that hangs is ended, and the run with it: pytest-xdist 3.8 may wait for its replacement without end.
_PARALLEL = f"--numprocesses {_PROCESSES} --dist loadfile --no-loadscope-reorder --max-worker-restart 0".split()
# Of the last, some measure times: one after the other.
TESTS = {
    "quick": ["-m", "not long and not extended", *_PARALLEL],
    "all": ["-m", "not extended", *_PARALLEL],
    "extended": ["-m", "extended"],
}


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
        ("all", "also run pyright and the slow tests, as CI does"),
        ("extended", "run only the tests that --all leaves out: measurements and long runs, for a release"),
    ):
        scopes.add_argument(f"--{scope}", action="store_const", dest="scope", const=scope, help=purpose)


def run(arguments: argparse.Namespace) -> int:
    checks = {"quick": CHECKS, "all": CHECKS | TYPES, "extended": {}}[arguments.scope]
    failed = [name for name, command in checks.items() if not _passes(name, command)]
    if failed:
        terminal.error(f"These checks failed before the tests ran: {', '.join(failed)}")
    passed = _passes("pytest", ["pytest", *TESTS[arguments.scope], *arguments.more])
    return 0 if passed and not failed else 1


def _passes(name: str, command: Sequence[str]) -> bool:
    terminal.heading(f"== {name}")
    program = [Path(sys.executable).with_name(command[0]), *command[1:]]
    process = subprocess.Popen(program, cwd=CHECKOUT, preexec_fn=die_with_parent(signal.SIGTERM))
    try:
        return process.wait() == 0
    except KeyboardInterrupt:
        process.wait()  # Ctrl-C reached it too, and it has things to clear away
        raise
