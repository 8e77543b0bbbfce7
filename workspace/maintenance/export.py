import os
import stat
import sys
import tarfile
from collections.abc import Sequence

from common import commands
from workspace.files import walking
from workspace.files.folder import Store
from workspace.maintenance import stored


def run(arguments: Sequence[str]) -> None:
    """`python -m workspace export --user NAME`: write all folders of a user as a tar archive."""
    store, user = stored.open_store(arguments, name="export", description="Writes a user's files as a tar archive.")
    names = store.names(user)
    if not names:
        commands.exit_nothing_stored(user)
    try:
        with tarfile.open(fileobj=sys.stdout.buffer, mode="w|") as archive:
            for name in names:
                _add_folder(archive, store, user, name)
    except OSError as error:
        reason = error.strerror or error  # tarfile's own have a text only
        sys.exit(f"The archive could not be written, or a file changed while it was read ({reason}). Try again.")


def _add_folder(archive: tarfile.TarFile, store: Store, user: str, name: str) -> None:
    """Directories and regular files; links and what else there may be lead elsewhere, or nowhere."""
    with store.existing(user, name) as folder:
        if folder is None:  # it was removed after it was listed
            return
        archive.addfile(_member(name, os.fstat(folder.descriptor), tarfile.DIRTYPE))
        for entry in walking.tree(folder.descriptor):
            path = f"{name}/{entry.path}"
            if stat.S_ISDIR(entry.status.st_mode):
                archive.addfile(_member(path, entry.status, tarfile.DIRTYPE))
            elif stat.S_ISREG(entry.status.st_mode):
                with (
                    walking.open_file(entry.directory, entry.name) as descriptor,
                    os.fdopen(os.dup(descriptor), "rb") as content,
                ):
                    archive.addfile(_member(path, os.fstat(descriptor), tarfile.REGTYPE), content)


def _member(path: str, status: os.stat_result, kind: bytes) -> tarfile.TarInfo:
    member = tarfile.TarInfo(path)
    member.type, member.mode, member.mtime = kind, stat.S_IMODE(status.st_mode) & 0o777, int(status.st_mtime)
    member.size = status.st_size if kind == tarfile.REGTYPE else 0
    return member
