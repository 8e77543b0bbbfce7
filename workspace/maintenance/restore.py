import argparse
import os
import shutil
import sys
import tarfile
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from workspace import stored_files

_NOT_EMPTY = "There are files of users already. Add --replace to replace them."


def run(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="restore", description="Reads a tar archive of all users' files.")
    parser.add_argument("--replace", action="store_true", help="though there are files")
    parser.add_argument("--finish", action="store_true", help="replace what is stored by what was read before")
    options = parser.parse_args(arguments)
    store = stored_files.open_whole_store()
    if store is None:
        sys.exit("WORKSPACE_DIR is not a directory. Create it first.")
    try:
        if options.finish:
            store.replace_by_restored()
        elif not options.replace and not store.is_empty():
            sys.exit(_NOT_EMPTY)
        else:
            _unpack(store.prepare_restored())
    except (OSError, tarfile.TarError) as error:
        sys.exit(f"The files could not be restored: {error}.")


def _unpack(root: Path) -> None:
    """Creates links last, so that nothing is written through one, and sets modes after the contents."""
    later: list[tuple[Path, tarfile.TarInfo]] = []
    with tarfile.open(fileobj=sys.stdin.buffer, mode="r|") as archive:
        for member in archive:
            parts = PurePosixPath(member.name).parts
            if not parts or parts[0] == "/" or ".." in parts:
                sys.exit(f"The archive has a path that leads elsewhere: {member.name!r}.")
            path = root.joinpath(*parts)
            if member.isdir():
                path.mkdir(mode=0o700)
            elif member.isfile() and (content := archive.extractfile(member)):
                with path.open("xb") as file:
                    shutil.copyfileobj(content, file)
            later.append((path, member))
    for path, member in reversed(later):
        if member.issym():
            path.symlink_to(member.linkname)
        else:
            path.chmod(member.mode)
            os.utime(path, (member.mtime, member.mtime))
