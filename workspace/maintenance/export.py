import os
import tarfile
from collections.abc import Sequence

from common import commands
from workspace import stored_files
from workspace.files import walking


def run(arguments: Sequence[str]) -> None:
    store, user = stored_files.open_store(
        arguments, name="export", description="Writes a user's files as a tar archive."
    )
    names = store.list_names(user)
    if not names:
        commands.exit_nothing_stored(user)
    with stored_files.open_archive() as archive:
        for name in names:
            with store.open_existing(user, name) as folder:
                if folder is None:  # it was removed after it was listed
                    continue
                archive.addfile(stored_files.create_member(name, os.fstat(folder.descriptor), tarfile.DIRTYPE))
                for entry in walking.walk_tree(folder.descriptor):
                    stored_files.add_entry(archive, entry, f"{name}/{entry.path}")
