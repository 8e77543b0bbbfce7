"""The commands on stored files, which also work while the service runs. Root switches to the store's owner."""

import argparse
import errno
import json
import os
import shutil
import stat
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from common import commands
from common.environment import read_or_stop, read_settings
from workspace import account
from workspace.files import walking
from workspace.files.folder import NOT_STORED, Store, is_restorable
from workspace.files.quota import Quota
from workspace.files.walking import DirectoryEntry
from workspace.settings import Settings, StoreSettings

_MAX_PATH_BYTES = 3_000  # the system takes up to 4,095, with the directory of all folders
_NOT_EMPTY = "There are files of users already. Add --replace to replace them."
_UNLIMITED = 2**63
_REPLACED = (errno.ENOENT, errno.EINVAL, errno.ELOOP, errno.ENXIO)
_MAX_MEMORY_BYTES = 16 * 1024**2


def check(arguments: Sequence[str]) -> None:
    argparse.ArgumentParser(prog="check", description="Checks the settings.").parse_args(arguments)
    read_or_stop(read_settings, Settings)


def backup(arguments: Sequence[str]) -> None:
    argparse.ArgumentParser(prog="backup", description="Writes all users' files as a tar archive.").parse_args(
        arguments
    )
    store, too_deep = _find_store(), 0
    with _open_archive() as archive:
        if store is None:
            return
        with walking.open_directory(store.root) as directory:
            for entry in walking.walk_tree(directory, should_enter=_is_stored):
                if len(entry.path.encode(errors="surrogateescape")) > _MAX_PATH_BYTES:
                    too_deep += 1
                elif _is_stored(entry):
                    _add_entry(archive, entry, links=True)
    if too_deep:
        sys.stderr.write(f"{too_deep} files were left out: their paths are longer than {_MAX_PATH_BYTES:,} bytes.\n")


def export(arguments: Sequence[str]) -> None:
    store, user = _find_store_of_user(arguments, name="export", description="Writes a user's files as a tar archive.")
    if not store.list_names(user):
        commands.exit_nothing_stored(user)
    with _open_archive() as archive, walking.open_directory(store.get_directory(user)) as directory:
        for entry in walking.walk_tree(directory):
            _add_entry(archive, entry)


def forget(arguments: Sequence[str]) -> None:
    store, user = _find_store_of_user(arguments, name="forget", description="Deletes all files of a user.")
    folders = len(store.list_names(user))
    if not store.remove(user):
        commands.exit_nothing_stored(user)
    sys.stdout.write(f"Deleted for good: folders {folders}.\n")


def adopt(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(
        prog="adopt", description="Moves the files of a user whose data `python -m backend adopt` gave to another one."
    )
    parser.parse_args(arguments)
    store, adopted = _find_store(), json.load(sys.stdin)
    if store is None:
        return
    try:
        moved, left = store.move_folders(adopted["old"], adopted["new"], {*adopted["conversations"]})
    except OSError as error:
        sys.exit(f"Not all files could be moved ({error.strerror}). Run the command again.")
    if moved:
        sys.stdout.write(f"Moved: folders {moved}.\n")
    if left:
        sys.exit(f"{left} folders were not moved: {adopted['new']} has files in the same conversations already.")


def restore(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="restore", description="Reads a tar archive of all users' files.")
    parser.add_argument("--replace", action="store_true", help="though there are files")
    parser.add_argument("--finish", action="store_true", help="replace what is stored by what was read before")
    options = parser.parse_args(arguments)
    store = _find_store()
    if store is None:
        sys.exit("WORKSPACE_DIR is not a directory. Create it first.")
    try:
        if options.finish:
            store.replace_by_restored()
        elif not options.replace and not store.is_empty():
            sys.exit(_NOT_EMPTY)
        else:
            try:
                _unpack(store.prepare_restored())
            except BaseException:
                store.discard_restored()  # what was unpacked may have filled the disk
                raise
    except (OSError, tarfile.TarError, ValueError, OverflowError) as error:
        sys.exit(f"The files could not be restored: {error}.")


COMMANDS: Mapping[str, Callable[[Sequence[str]], None]] = {
    "adopt": adopt,
    "backup": backup,
    "check": check,
    "export": export,
    "forget": forget,
    "restore": restore,
}


def _find_store_of_user(arguments: Sequence[str], *, name: str, description: str) -> tuple[Store, str]:
    user = commands.parse_user(arguments, name=name, description=description)
    return _find_store() or commands.exit_nothing_stored(user), user


def _find_store() -> Store | None:
    """Returns None if there is none."""
    root = read_or_stop(read_settings, StoreSettings).workspace_dir
    if not root.is_dir():
        return None
    if os.geteuid() == 0 and (owner := root.stat().st_uid):
        account.switch_account(owner)
    return Store(root, Quota(bytes=_UNLIMITED, files=_UNLIMITED))


def _is_stored(entry: DirectoryEntry) -> bool:
    return bool(entry.parents) or entry.name not in NOT_STORED


@contextmanager
def _open_archive() -> Iterator[tarfile.TarFile]:
    """Yields an archive that is written to stdout; exits with a sentence if that fails."""
    try:
        with tarfile.open(fileobj=sys.stdout.buffer, mode="w|") as archive:
            yield archive
    except OSError as error:
        reason = error.strerror or error  # tarfile's own have a text only
        sys.exit(f"The archive could not be written, or a folder was moved while it was read ({reason}). Try again.")


def _add_entry(archive: tarfile.TarFile, entry: DirectoryEntry, *, links: bool = False) -> None:
    """Adds a directory, a file or, with `links`, a link; skips an entry that is removed or replaced at that moment."""
    mode = entry.status.st_mode
    member = tarfile.TarInfo(entry.path)
    member.mode, member.mtime = stat.S_IMODE(mode) & 0o777, int(entry.status.st_mtime)
    try:
        if stat.S_ISDIR(mode):
            member.type = tarfile.DIRTYPE
            member.mode |= 0o700  # a command may have closed it
            archive.addfile(member)
        elif stat.S_ISLNK(mode) and links:
            member.type = tarfile.SYMTYPE
            member.linkname = os.readlink(entry.name, dir_fd=entry.directory)
            archive.addfile(member)
        elif stat.S_ISREG(mode):
            _add_file(archive, entry, member)
    except OSError as error:
        if error.errno not in _REPLACED:
            raise


def _add_file(archive: tarfile.TarFile, entry: DirectoryEntry, member: tarfile.TarInfo) -> None:
    with tempfile.SpooledTemporaryFile(_MAX_MEMORY_BYTES) as content:
        with (
            walking.open_file(entry.directory, entry.name) as descriptor,
            open(descriptor, "rb", closefd=False) as file,
        ):
            shutil.copyfileobj(file, content)
        member.size = content.tell()
        content.seek(0)
        archive.addfile(member, content)


def _unpack(root: Path) -> None:
    """Creates links last, so that nothing is written through one, and sets modes after the contents."""
    later: list[tuple[Path, tarfile.TarInfo]] = []
    with tarfile.open(fileobj=sys.stdin.buffer, mode="r|") as archive:
        for member in archive:
            parts = PurePosixPath(member.name).parts
            if not parts or parts[0] == "/" or ".." in parts:
                sys.exit(f"The archive has a path that leads elsewhere: {member.name!r}.")
            if not is_restorable(parts, is_directory=member.isdir(), is_link=member.issym()):
                sys.exit(f"The archive has what no backup of this program has: {member.name!r}.")
            path = root.joinpath(*parts)
            if member.isdir():
                path.mkdir(mode=0o700)
            elif member.isfile() and not member.issparse() and (content := archive.extractfile(member)):
                with path.open("xb") as file:
                    shutil.copyfileobj(content, file)
            elif not member.issym():
                # A hard link, a device or a file with holes, which a few bytes can make as large as the disk.
                sys.exit(f"The archive has what is neither a file, a directory nor a symbolic link: {member.name!r}.")
            later.append((path, member))
    for path, member in reversed(later):
        if member.issym():
            path.symlink_to(member.linkname)
        else:
            path.chmod(member.mode & 0o777)
            os.utime(path, (member.mtime, member.mtime))
