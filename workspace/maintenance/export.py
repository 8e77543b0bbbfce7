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
    """`python -m workspace export --user NAME`: write all folders of a person as a tar archive."""
    store, user = stored.found(arguments, name="export", description="Writes a user's files as a tar archive.")
    names = store.names(user)
    if not names:
        commands.nothing_stored(user)
    try:
        with tarfile.open(fileobj=sys.stdout.buffer, mode="w|") as archive:
            for name in names:
                _add_folder(archive, store, user, name)
    except OSError as error:
        reason = error.strerror or error  # tarfile's own have a text only
        sys.exit(f"The archive could not be written, or a file changed while it was read ({reason}). Try again.")


def _add_folder(archive: tarfile.TarFile, store: Store, user: str, name: str) -> None:
    with store.existing(user, name) as folder:
        if folder is not None:  # else it was removed meanwhile
            _add(archive, folder.descriptor, name)


def _add(archive: tarfile.TarFile, directory: int, path: str) -> None:
    """Directories and regular files; links and what else there may be lead elsewhere, or nowhere."""
    archive.addfile(_member(path, os.fstat(directory), tarfile.DIRTYPE))
    for entry in walking.entries(directory):
        inner = f"{path}/{entry.name}"
        if walking.is_directory(entry):
            with walking.entered(directory, entry.name) as below:
                _add(archive, below, inner)
        elif entry.is_file(follow_symlinks=False):
            with walking.read(directory, entry.name) as descriptor, os.fdopen(os.dup(descriptor), "rb") as content:
                archive.addfile(_member(inner, os.fstat(descriptor), tarfile.REGTYPE), content)


def _member(path: str, found: os.stat_result, kind: bytes) -> tarfile.TarInfo:
    member = tarfile.TarInfo(path)
    member.type, member.mode, member.mtime = kind, stat.S_IMODE(found.st_mode) & 0o777, int(found.st_mtime)
    member.size = found.st_size if kind == tarfile.REGTYPE else 0
    return member
