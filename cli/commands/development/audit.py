"""Looks up what is locked in public lists of known vulnerabilities. Installs nothing."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

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
PIP_AUDIT += ["--format", "json", "--desc", "on", "--progress-spinner", "off"]
NPM_AUDIT = ["audit", "--package-lock-only", "--json"]


class NotLookedUp(Exception):
    """Why nothing is known about a lock."""


def add(commands: Commands) -> None:
    add_command(
        commands,
        "audit",
        lambda _: audit(),
        "check the locked packages for known vulnerabilities",
        "Checks the packages of the requirements locks for this platform against a public list of known "
        "vulnerabilities, and those of the tests' npm locks if npm is installed. Needs the internet.",
        has_data_dir=False,
    )


def audit(*, python_locks: tuple[Path, ...] = PYTHON_LOCKS, npm_locks: tuple[Path, ...] = NPM_LOCKS) -> int:
    """Returns 0 only if every lock was looked up and nothing is known of any package; without npm its locks are left
    out.
    """
    pip_audit = AUDIT.python.with_name("pip-audit")
    clean = [_report(lock, [pip_audit, "--requirement", lock, *PIP_AUDIT]) for lock in python_locks]
    if npm := shutil.which("npm"):
        clean += [_report(lock, [npm, *NPM_AUDIT]) for lock in npm_locks]
    else:
        terminal.warn("npm is not installed, so only the Python packages were checked.")
    return 0 if all(clean) else 1


def _report(lock: Path, command: list[str | Path]) -> bool:
    """Whether the lock was looked up and nothing is known of its packages."""
    name = lock.relative_to(CHECKOUT) if lock.is_relative_to(CHECKOUT) else lock
    terminal.heading(f"== {name}")
    done = subprocess.run(command, cwd=lock.parent, capture_output=True, text=True, check=False)
    try:
        packages, found = _parse(done)
    except NotLookedUp as error:
        terminal.error(
            f"{name} could not be checked for vulnerabilities. Check the network or the proxy, and try again.\n{error}"
        )
        return False
    for line in found:
        terminal.say(line)
    terminal.say(f"{packages} packages; known vulnerabilities: {len(found) or 'none'}")
    return not found


def _parse(done: subprocess.CompletedProcess[str]) -> tuple[int, list[str]]:
    """How many packages were looked up, and a line for each vulnerability. Both tools end with 1 whatever is wrong."""
    try:
        report = json.loads(done.stdout)
    except ValueError:  # pip-audit has none when its list does not answer
        report = {}
    if "dependencies" in report:
        return len(report["dependencies"]), _of_pip_audit(report)
    if "vulnerabilities" in report:
        return report["metadata"]["dependencies"]["total"], _of_npm(report)
    last = (done.stderr.strip() or f"exit status {done.returncode}").splitlines()[-1]
    raise NotLookedUp(report.get("message") or last)


def _of_pip_audit(report: dict[str, Any]) -> list[str]:
    return [
        f"{package['name']} {package['version']}: {known['description']} ({known['id']}, "
        f"{'fixed in ' + ', '.join(known['fix_versions']) if known['fix_versions'] else 'not fixed yet'})"
        for package in report["dependencies"]
        for known in package["vulns"]
    ]


def _of_npm(report: dict[str, Any]) -> list[str]:
    """Packages that are only named because they need a vulnerable one have its name in `via`, not an advisory."""
    return [
        f"{name} {known['range']}: {known['title']} ({known['severity']}, {known['url']})"
        for name, package in report["vulnerabilities"].items()
        for known in package["via"]
        if isinstance(known, dict)
    ]
