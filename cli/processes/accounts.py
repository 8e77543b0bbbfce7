"""Accounts for what root does not run as itself: numbers without a name, so nothing is added to the machine's list.

Each data directory has one of its own: what gets out of one installation's PostgreSQL owns nothing of another's.
"""

import fcntl
import os
import pwd
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from cli.data_dir import ROOT_HOME
from cli.errors import CliError, explain_os_error

CLAIMS = ROOT_HOME / "accounts"
"""A link for each number that is in use, which leads to its data directory."""
NUMBERS = range(61_004, 61_184)  # below 65,536, as a container may have no others; systemd's documentation: unused


def claim(data_dir: Path) -> int:
    """Returns the number of this data directory; the first time, one that no directory has which is still there."""
    with explain_os_error(f"{CLAIMS} cannot be written"), _locked_claims():
        links = {number: CLAIMS / str(number) for number in NUMBERS}
        claimed = {number: Path(os.readlink(link)) for number, link in links.items() if link.is_symlink()}
        if found := next((number for number, owner in claimed.items() if owner == data_dir), None):
            return found
        for number, link in links.items():
            if (number not in claimed or not claimed[number].is_dir()) and not _has_name(number):
                link.unlink(missing_ok=True)
                link.symlink_to(data_dir)
                return number
    raise CliError(f"All {len(NUMBERS)} accounts are in use: delete the links in {CLAIMS} that you do not need.")


def get_nobody() -> int:
    """Returns the account that every system has beside root, and which all services without one of their own share."""
    try:
        return pwd.getpwnam("nobody").pw_uid
    except KeyError:
        raise CliError("PostgreSQL does not run as root and there is no user nobody here: set DATABASE_URL.") from None


def list_own_names() -> set[str]:
    """Returns the names of who runs this, and of root, who could become everybody."""
    try:
        return {pwd.getpwuid(number).pw_name for number in (0, os.geteuid())}
    except KeyError:
        raise CliError(
            f"PostgreSQL cannot run, because the user number {os.geteuid()} has no name here: start ./todo as another "
            "user, or set DATABASE_URL."
        ) from None


@contextmanager
def _locked_claims() -> Iterator[None]:
    for path in (ROOT_HOME, CLAIMS):
        with suppress(FileExistsError):
            path.mkdir()
            path.chmod(0o755)  # whatever the umask is: PostgreSQL may have to pass
    directory = os.open(CLAIMS, os.O_RDONLY)
    try:
        fcntl.flock(directory, fcntl.LOCK_EX)
        yield
    finally:
        os.close(directory)


def _has_name(number: int) -> bool:
    try:
        pwd.getpwuid(number)
    except KeyError:
        return False
    return True
