"""Functions of the maintenance commands, which also work while the service runs."""

import errno
import os
import shutil
import stat
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from common import commands
from common.environment import read_or_stop, read_settings
from workspace import account
from workspace.files import walking
from workspace.files.folder import Store
from workspace.files.quota import Quota
from workspace.settings import StoreSettings

_ANY = 2**63
_REPLACED = (errno.ENOENT, errno.EINVAL, errno.ELOOP, errno.ENXIO)
_IN_MEMORY = 16 * 1024**2


def open_store(arguments: Sequence[str], *, name: str, description: str) -> tuple[Store, str]:
    """Returns the store and the user of the command; root switches to the store's owner."""
    user = commands.parse_user(arguments, name=name, description=description)
    store = open_whole_store()
    if store is None:
        commands.exit_nothing_stored(user)
    return store, user


def open_whole_store() -> Store | None:
    """Returns the store, or None if there is none; root switches to its owner."""
    root = read_or_stop(partial(read_settings, StoreSettings)).workspace_dir
    if not root.is_dir():
        return None
    if os.geteuid() == 0 and (owner := root.stat().st_uid):
        account.switch_account(owner)
    return Store(root, Quota(bytes=_ANY, files=_ANY))


@contextmanager
def open_archive() -> Iterator[tarfile.TarFile]:
    """Yields an archive that is written to stdout; exits with a sentence if that fails."""
    try:
        with tarfile.open(fileobj=sys.stdout.buffer, mode="w|") as archive:
            yield archive
    except OSError as error:
        reason = error.strerror or error  # tarfile's own have a text only
        sys.exit(f"The archive could not be written, or a folder was moved while it was read ({reason}). Try again.")


def add_entry(archive: tarfile.TarFile, entry: walking.DirectoryEntry, path: str, *, links: bool = False) -> None:
    """Adds a directory, a file or, with `links`, a link; skips an entry that is removed or replaced at that moment."""
    mode = entry.status.st_mode
    try:
        if stat.S_ISDIR(mode):
            archive.addfile(create_member(path, entry.status, tarfile.DIRTYPE))
        elif stat.S_ISLNK(mode) and links:
            link = create_member(path, entry.status, tarfile.SYMTYPE)
            link.linkname = os.readlink(entry.name, dir_fd=entry.directory)
            archive.addfile(link)
        elif stat.S_ISREG(mode):
            _add_file(archive, entry, path)
    except OSError as error:
        if error.errno not in _REPLACED:
            raise


def _add_file(archive: tarfile.TarFile, entry: walking.DirectoryEntry, path: str) -> None:
    with tempfile.SpooledTemporaryFile(_IN_MEMORY) as content:
        with (
            walking.open_file(entry.directory, entry.name) as descriptor,
            open(descriptor, "rb", closefd=False) as file,
        ):
            shutil.copyfileobj(file, content)
        member = create_member(path, entry.status, tarfile.REGTYPE)
        member.size = content.tell()
        content.seek(0)
        archive.addfile(member, content)


def create_member(path: str, status: os.stat_result, kind: bytes) -> tarfile.TarInfo:
    member = tarfile.TarInfo(path)
    member.type, member.mode, member.mtime = kind, stat.S_IMODE(status.st_mode) & 0o777, int(status.st_mtime)
    return member
