import os
import sys
import tarfile
from collections.abc import Sequence

from common import commands
from workspace import stored_files
from workspace.files import walking
from workspace.files.folder import Store


def run(arguments: Sequence[str]) -> None:
    store, user = stored_files.open_store(
        arguments, name="export", description="Writes a user's files as a tar archive."
    )
    names = store.list_names(user)
    if not names:
        commands.exit_nothing_stored(user)
    try:
        with tarfile.open(fileobj=sys.stdout.buffer, mode="w|") as archive:
            for name in names:
                _add_folder(archive, store, user, name)
    except OSError as error:
        reason = error.strerror or error  # tarfile's own have a text only
        sys.exit(f"The archive could not be written, or a folder was moved while it was read ({reason}). Try again.")


def _add_folder(archive: tarfile.TarFile, store: Store, user: str, name: str) -> None:
    with store.open_existing(user, name) as folder:
        if folder is None:  # it was removed after it was listed
            return
        archive.addfile(stored_files.create_member(name, os.fstat(folder.descriptor), tarfile.DIRTYPE))
        for entry in walking.walk_tree(folder.descriptor):
            stored_files.add_entry(archive, entry, f"{name}/{entry.path}")
