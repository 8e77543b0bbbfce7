"""Looks up what is locked in public lists of known vulnerabilities. Installs nothing."""

import argparse
import shutil
import subprocess
from pathlib import Path

from cli import terminal
from cli.arguments import Commands, add_command
from cli.data_dir import CHECKOUT
from cli.packages import AUDIT

PYTHON_LOCKS = tuple(CHECKOUT / f"requirements{of}.lock" for of in ("", "-embedded", "-audit", "-kubernetes"))
NPM_LOCKS = tuple(
    CHECKOUT / "tests" / folder / "package-lock.json" for folder in ("frontends", "mcp_clients", "browser")
)
# Of the lists that pip-audit knows, the one whose address can be set: PIP_AUDIT_OSV_URL.
PIP_AUDIT = ["--disable-pip", "--require-hashes", "--strict", "--vulnerability-service", "osv"]
PIP_AUDIT += ["--desc", "on", "--progress-spinner", "off"]


def add(commands: Commands) -> None:
    add_command(
        commands,
        "audit",
        run,
        "check the locked packages for known vulnerabilities",
        "Checks the packages of the requirements locks for this platform against a public list of known "
        "vulnerabilities, and those of the tests' npm locks if npm is installed. Needs the internet. Exit status 0: "
        "all were looked up, and nothing is known of them.",
        has_data_dir=False,
    )


def run(_: argparse.Namespace) -> int:
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
