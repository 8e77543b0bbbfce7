"""The files of a cluster: to whom they belong, and who may log in."""

import os
import tempfile
from pathlib import Path

from cli.errors import CliError
from cli.processes import accounts

# Only the account that runs `./todo`, and root, may log in, whoever can reach the socket.
_ACCESS = "local all all peer map=todo\n"
# As which roles: `all` is a keyword since PostgreSQL 16.
_LOGINS = ("all", "app", "todo_owner", "todo_service")
STATUS_LINE = 7  # of postmaster.pid, "ready" once connections are accepted


def write_access(files: Path) -> None:
    """At each start, because an older version's rule is weaker, and the account may have another name since."""
    names = [name.replace('"', '""') for name in sorted(accounts.list_own_names())]
    _replace(files / "pg_ident.conf", "".join(f'todo "{name}" {login}\n' for name in names for login in _LOGINS))
    _replace(files / "pg_hba.conf", _ACCESS)


def take_over(files: Path, account: int) -> None:
    """Gives a cluster to `account`, who had another one, or nobody's as in versions before 0.3.

    The directory itself comes last: until then, the next start repeats what was interrupted. Files of others, to which
    the owner may have made links, are left alone.
    """
    owner = files.lstat().st_uid
    if owner == account:
        return
    previous = list_previous_accounts()
    if owner not in previous:
        raise CliError(
            f"{files} belongs to the user number {owner}: start ./todo as that user, or choose another --data-dir."
        )
    for _, directories, names, above in os.fwalk(files, topdown=False):
        for name in (*directories, *names):
            if os.stat(name, dir_fd=above, follow_symlinks=False).st_uid in previous:
                os.chown(name, account, account, dir_fd=above, follow_symlinks=False)
    os.chown(files, account, account, follow_symlinks=False)


def list_previous_accounts() -> set[int]:
    """Returns whom a cluster of root's may have belonged to at an earlier start."""
    return {accounts.get_nobody(), *accounts.NUMBERS}


def read_ready_pid(files: Path) -> int | None:
    try:
        lines = (files / "postmaster.pid").read_bytes().split(b"\n")  # the path in it may have any other bytes
    except FileNotFoundError:
        return None
    return int(lines[0]) if len(lines) > STATUS_LINE and lines[STATUS_LINE].strip() == b"ready" else None


def _replace(path: Path, text: str) -> None:
    """Never writes into what is there, which the directory's owner may have replaced by a link."""
    with tempfile.NamedTemporaryFile("w", dir=path.parent, prefix=f"{path.name}.", delete=False) as fresh:
        os.fchmod(fresh.fileno(), 0o644)
        fresh.write(text)
    Path(fresh.name).replace(path)
