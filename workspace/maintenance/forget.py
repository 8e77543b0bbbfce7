import sys
from collections.abc import Sequence

from common import commands
from workspace import stored_files


def run(arguments: Sequence[str]) -> None:
    store, user = stored_files.open_store(arguments, name="forget", description="Deletes all files of a user.")
    folders = len(store.list_names(user))
    if not store.remove(user):
        commands.exit_nothing_stored(user)
    sys.stdout.write(f"Deleted for good: folders {folders}.\n")
