"""Which files of a folder its person put in, known by what they held then: all else may be by whoever works there."""

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from common.tool_server.refusals import Refusal
from workspace.files import opening, walking, writing
from workspace.files.folder import Folder

_MOST = 1_000  # of a folder: the oldest are its person's no more
_PIECE = 1_000_000  # bytes
_GIVEN = "uploads"


class Digest(Protocol):
    def hexdigest(self) -> str: ...


def keep(folder: Folder, path: str, digest: Digest) -> None:
    """Remember what was put in, where no command sees it."""
    path = "/".join(opening.names(path))
    for directory in (folder.uploads.parent, folder.uploads):
        with suppress(FileExistsError):
            directory.mkdir(mode=0o700)
    record = folder.uploads / f"{hashlib.sha256(path.encode()).hexdigest()}.json"
    fresh = record.with_suffix(".new")
    fresh.write_text(json.dumps({"path": path, "sha256": digest.hexdigest()}))
    fresh.replace(record)
    if len(records := [*folder.uploads.iterdir()]) > _MOST:
        min(records, key=lambda one: one.stat().st_mtime_ns).unlink()


def give(folder: Folder, other: Folder) -> list[str]:
    """Copy those that are as they were put in into another folder, in place of what it was given before.

    Returns their paths. What is no such file any more is left out; raises a `Refusal` where there is no room.
    """
    _clear(other)
    given: list[str] = []
    for path, digest in _kept(folder.uploads):
        try:
            with opening.file(folder.descriptor, path) as opened, writing.incoming(other) as (name, descriptor):
                if _copy(opened.descriptor, descriptor) == digest:
                    writing.put(other, f"{_GIVEN}/{path}", name, descriptor)
                    given.append(path)
        except Refusal as refusal:
            if refusal.kind == "limit":
                raise
    return sorted(given)


def _kept(records: Path) -> Iterator[tuple[str, str]]:
    if records.is_dir():
        for record in records.glob("*.json"):
            kept = json.loads(record.read_text())
            yield kept["path"], kept["sha256"]


def _copy(source: int, target: int) -> str:
    """The hash of what was copied, so that it is the same whatever is done to the source meanwhile."""
    digest = hashlib.sha256()
    with os.fdopen(os.dup(source), "rb") as reading, os.fdopen(os.dup(target), "wb") as written:
        while piece := reading.read(_PIECE):
            digest.update(piece)
            written.write(piece)
    return digest.hexdigest()


def _clear(folder: Folder) -> None:
    try:
        os.unlink(_GIVEN, dir_fd=folder.descriptor)
    except FileNotFoundError:
        return
    except (IsADirectoryError, PermissionError):  # as Linux and macOS say of a directory
        walking.remove(folder.descriptor, _GIVEN)
