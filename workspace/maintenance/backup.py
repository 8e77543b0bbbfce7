import argparse
import sys
from collections.abc import Sequence

from workspace import stored_files
from workspace.files import walking
from workspace.files.folder import NOT_STORED

_LONGEST_PATH = 3_000  # bytes: the system takes up to 4,095, with the directory of all folders


def run(arguments: Sequence[str]) -> None:
    argparse.ArgumentParser(prog="backup", description="Writes all users' files as a tar archive.").parse_args(
        arguments
    )
    store, too_deep = stored_files.open_whole_store(), 0
    with stored_files.open_archive() as archive:
        if store is None:
            return
        with walking.open_directory(store.root) as directory:
            for entry in walking.walk_tree(directory, should_enter=_is_stored):
                if len(entry.path.encode(errors="surrogateescape")) > _LONGEST_PATH:
                    too_deep += 1
                elif _is_stored(entry):
                    stored_files.add_entry(archive, entry, entry.path, links=True)
    if too_deep:
        sys.stderr.write(f"{too_deep} files were left out: their paths are longer than {_LONGEST_PATH:,} bytes.\n")


def _is_stored(entry: walking.DirectoryEntry) -> bool:
    return bool(entry.parents) or entry.name not in NOT_STORED
