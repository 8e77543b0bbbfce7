"""Lists the files of a folder."""

import os
import stat
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import islice
from typing import Any, NamedTuple

from common.tool_server.errors import to_printable
from workspace.files import opening, walking
from workspace.files.folder import Folder
from workspace.results import CallResult

MAX_NAMES = 500
_MAX_FILES = 1_000  # of the list for a user
_MAX_COMPARED = 20_000
_MAX_CHANGED = 100
_KINDS = {stat.S_IFREG: "file", stat.S_IFDIR: "directory", stat.S_IFLNK: "link"}
_MAX_LEVELS = 64  # of directories; what is below is not listed
_NOT_ENTERED = ".git"
_LAST_SECOND = datetime.max.replace(tzinfo=UTC, microsecond=0).timestamp()


class FileState(NamedTuple):
    path: str
    kind: str
    size: int
    modified: float

    @property
    def name(self) -> str:
        return f"{self.path}/" if self.kind == "directory" else self.path


def list_directory(folder: Folder, path: str = ".", *, depth: int = 1) -> CallResult:
    above = opening.split_path(path)
    with opening.open_directory(folder.descriptor, above) as directory:
        found = _list_entries(directory, above, depth, repair=not folder.is_outside)
        entries = [*islice(found, MAX_NAMES + 1)]
    entries, more = entries[:MAX_NAMES], len(entries) > MAX_NAMES
    lines = [to_printable(entry.name, max_length=1_100) for entry in entries] or ["It is empty."]
    if more:
        lines.append(f"(Only the first {MAX_NAMES} are shown. List a single directory to see more.)")
    return CallResult("\n".join(lines), {"entries": [_render_json(entry) for entry in entries], "more": more})


def list_files(folder: Folder) -> dict[str, Any]:
    files = [*islice(_list_files(folder), _MAX_FILES + 1)]
    return {"files": [_render_json(file) for file in files[:_MAX_FILES]], "more": len(files) > _MAX_FILES}


def list_states(folder: Folder) -> dict[str, FileState] | None:
    """Returns the state of each file, or None if there are too many to compare."""
    files = [*islice(_list_files(folder), _MAX_COMPARED + 1)]
    return {file.path: file for file in files} if len(files) <= _MAX_COMPARED else None


def list_changes(before: dict[str, FileState] | None, now: dict[str, FileState] | None) -> list[dict[str, Any]]:
    """Returns the first files that are new or differ in kind, size or time."""
    if before is None or now is None:
        return []
    changed = [entry for path, entry in now.items() if before.get(path) != entry][:_MAX_CHANGED]
    return [{"path": _decode_path(entry.path), "bytes": entry.size} for entry in changed]


def _list_files(folder: Folder) -> Iterator[FileState]:
    entries = _list_entries(folder.descriptor, repair=not folder.is_outside)
    return (entry for entry in entries if entry.kind == "file")


def _list_entries(
    directory: int, above: Sequence[str] = (), depth: int = _MAX_LEVELS, *, repair: bool
) -> Iterator[FileState]:
    for entry in walking.walk_tree(
        directory,
        should_enter=lambda entry: len(entry.parents) + 1 < depth and entry.name != _NOT_ENTERED,
        repair=repair,
    ):
        kind = _KINDS.get(stat.S_IFMT(entry.status.st_mode), "other")
        yield FileState("/".join((*above, entry.path)), kind, entry.status.st_size, entry.status.st_mtime)


def _render_json(entry: FileState) -> dict[str, Any]:
    return {"path": _decode_path(entry.path), "kind": entry.kind, "size": entry.size, "modified": _render_time(entry)}


def _render_time(entry: FileState) -> str:
    """The commands of an agent can set a time after the year 9999, which has no standard form."""
    moment = datetime.fromtimestamp(min(max(entry.modified, 0), _LAST_SECOND), UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _decode_path(path: str) -> str:
    """File names may be bytes that are not UTF-8, which JSON cannot hold."""
    return os.fsencode(path).decode(errors="replace")
