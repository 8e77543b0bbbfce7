"""Commands for those who change the code."""

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from cli import terminal
from cli.arguments import Commands, add_command
from cli.data_dir import CHECKOUT
from cli.packages import AUDIT
from cli.processes.children import die_with_parent
from cli.services import environment

PYTHON_LOCKS = tuple(
    CHECKOUT / f"requirements{of}.lock" for of in ("", "-embedded", "-uv", "-audit", "-kubernetes", "-real")
)
NPM_LOCKS = tuple(
    CHECKOUT / "tests" / folder / "package-lock.json" for folder in ("frontends", "mcp_clients", "browser")
)
# Of the lists that pip-audit knows, the one whose address can be set: PIP_AUDIT_OSV_URL.
PIP_AUDIT = ["--disable-pip", "--require-hashes", "--strict", "--vulnerability-service", "osv"]
PIP_AUDIT += ["--desc", "on", "--progress-spinner", "off"]

CHECKS = {
    "ruff check": ["ruff", "check"],
    "ruff format": ["ruff", "format", "--check"],
    "lint-imports": ["lint-imports"],
}
# A file stays with one process, because its tests share fixtures; tests/conftest.py puts the longest files first. Tests
# often wait, for processes, pages and times, so there is one more than processors.
_PROCESSES = min((os.cpu_count() or 1) + 1, 4)
# A process that hangs is ended, and the run with it: pytest-xdist 3.8 may wait for its replacement without end.
_PARALLEL = f"--numprocesses {_PROCESSES} --dist loadfile --no-loadscope-reorder --max-worker-restart 0".split()
# Of the last, some measure times: one after the other.
TESTS = {
    "quick": ["-m", "not long and not extended", *_PARALLEL],
    "all": ["-m", "not extended", *_PARALLEL],
    "extended": ["-m", "extended"],
}
MINUTES = {"quick": 4, "all": 20}  # measured with two processors


def add(commands: Commands) -> None:
    for name, run, short in (
        ("bench", run_bench, "measure how fast it is"),
        ("eval", run_eval, "measure how often the model changes the list correctly"),
    ):
        parser = add_command(commands, name, run, short, "", has_data_dir=False, add_help=False)
        parser.set_defaults(takes_more=True)
    add_command(
        commands,
        "audit",
        run_audit,
        "check the locked packages for known vulnerabilities",
        "Checks the packages of the requirements locks for this platform against a public list of known "
        "vulnerabilities, and those of the tests' npm locks if npm is installed. Needs the internet. Exit status 0: "
        "all were looked up, and nothing is known of them.",
        has_data_dir=False,
    )
    parser = add_command(
        commands,
        "test",
        run_test,
        "check the code and run the tests",
        "Checks the code and runs the tests on a temporary PostgreSQL, or in separate databases on the server of "
        "DATABASE_URL. Further arguments go to pytest. With two processors it takes about "
        f"{MINUTES['quick']} minutes, with --all {MINUTES['all']}.",
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


def run_bench(arguments: argparse.Namespace) -> int:
    return _start_in_environment("bench", arguments.more, dict(os.environ))


def run_eval(arguments: argparse.Namespace) -> int:
    """Measures the model that `./todo up` would take."""
    from cli.services import ollama

    variables, _ = ollama.choose_model(environment.load())
    if environment.needs_offline_model(variables):
        variables["LLM_PROVIDER"] = environment.OFFLINE
    return _start_in_environment("evals", arguments.more, variables)


def _start_in_environment(module: str, arguments: list[str], variables: dict[str, str]) -> int:
    variables["PYTHONPATH"] = str(CHECKOUT)
    os.execve(sys.executable, [sys.executable, "-P", "-m", module, *arguments], variables)  # noqa: S606 - no shell


def run_audit(_: argparse.Namespace) -> int:
    pip_audit = AUDIT.python.with_name("pip-audit")
    clean = [_is_clean(lock, [pip_audit, "--requirement", lock, *PIP_AUDIT]) for lock in PYTHON_LOCKS]
    if npm := shutil.which("npm"):
        clean += [_is_clean(lock, [npm, "audit", "--package-lock-only"]) for lock in NPM_LOCKS]
    else:
        terminal.warn("npm is not installed, so only the Python packages were checked.")
    return 0 if all(clean) else 1


def _is_clean(lock: Path, command: list[str | Path]) -> bool:
    """Shows what a tool says of a lock; both end with another status than 0 whatever is wrong."""
    name = lock.relative_to(CHECKOUT)
    terminal.heading(f"== {name}")
    if subprocess.run(command, cwd=lock.parent, check=False).returncode:
        terminal.error(f"{name} has known vulnerabilities, or could not be checked: see above.")
        return False
    return True


def run_test(arguments: argparse.Namespace) -> int:
    if (minutes := MINUTES.get(arguments.scope)) and not arguments.more:
        terminal.say(f"This takes about {minutes} minutes with two processors.")
    checks = {} if arguments.scope == "extended" else CHECKS
    failed = [name for name, command in checks.items() if not _run_check(name, command)]
    if failed:
        terminal.error(f"These checks failed before the tests ran: {', '.join(failed)}")
    with tempfile.TemporaryFile() as report:
        # It takes minutes of one processor, while the tests often wait.
        pyright = _start(["pyright"], report) if arguments.scope == "all" else None
        passed = _run_check("pytest", ["pytest", *TESTS[arguments.scope], *arguments.more])
        if pyright:
            terminal.heading("== pyright")
            passed &= pyright.wait() == 0
            report.seek(0)
            terminal.copy(report)
    return 0 if passed and not failed else 1


def _run_check(name: str, command: Sequence[str]) -> bool:
    terminal.heading(f"== {name}")
    process = _start(command)
    try:
        return process.wait() == 0
    except KeyboardInterrupt:
        process.wait()  # Ctrl-C reached it too, and it has things to clear away
        raise


def _start(command: Sequence[str], output: BinaryIO | None = None) -> subprocess.Popen[bytes]:
    program = [Path(sys.executable).with_name(command[0]), *command[1:]]
    preexec = die_with_parent(signal.SIGTERM)
    return subprocess.Popen(program, cwd=CHECKOUT, stdout=output, stderr=output, preexec_fn=preexec)
