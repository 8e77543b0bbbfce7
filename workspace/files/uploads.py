"""Records the hashes of uploaded files, to tell them from files that agents wrote."""

import hashlib
import json
import os
import shutil
from contextlib import suppress

from common.tool_server.errors import CallError
from workspace.files import incoming, opening, walking
from workspace.files.folder import Folder
from workspace.results import store_record

_MAX_RECORDS, _MAX_RECORD_BYTES = 1_000, 10_000_000  # of a folder: the oldest are forgotten
_UPLOADS = "uploads"


def record(folder: Folder, path: str, digest: str) -> None:
    path = "/".join(opening.split_path(path))
    for directory in (folder.uploads.parent, folder.uploads):
        with suppress(FileExistsError):
            directory.mkdir(mode=0o700)
    store_record(
        folder.uploads, path, {"path": path, "sha256": digest}, most=_MAX_RECORDS, most_bytes=_MAX_RECORD_BYTES
    )


def copy(folder: Folder, other: Folder) -> list[str]:
    """Copies unchanged uploads in place of earlier copies and returns their paths; raises if the folder is full."""
    _clear(other)
    copied: list[str] = []
    for record_file in folder.uploads.glob("*.json"):
        upload = json.loads(record_file.read_text())
        path = upload["path"]
        try:
            with opening.open_file(folder.descriptor, path) as opened, incoming.create_incoming(other) as file:
                shutil.copyfileobj(opened.file, file)
                file.seek(0)  # the hash of the copy, because the source may change at any time
                if hashlib.file_digest(file, "sha256").hexdigest() == upload["sha256"]:
                    incoming.move_incoming(other, f"{_UPLOADS}/{path}", file)
                    copied.append(path)
        except CallError as error:
            if error.kind == "limit":
                raise
    return sorted(copied)


def _clear(folder: Folder) -> None:
    try:
        os.unlink(_UPLOADS, dir_fd=folder.descriptor)
    except FileNotFoundError:
        return
    except (IsADirectoryError, PermissionError):  # as Linux and macOS say of a directory
        walking.remove_tree(folder.descriptor, _UPLOADS)
