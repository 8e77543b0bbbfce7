"""What is in a folder."""

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, NamedTuple

from common.tool_server.refusals import shown
from workspace.files import opening, walking
from workspace.files.folder import Answer, Folder

MOST_NAMES = 500
_MOST_FILES = 1_000  # of the list for a person
_MOST_COMPARED = 20_000
_MOST_CHANGED = 100
_KINDS = {stat.S_IFREG: "file", stat.S_IFDIR: "directory", stat.S_IFLNK: "link"}
_NOT_ENTERED = ".git"  # what git keeps there nobody wrote


class Entry(NamedTuple):
    path: str
    kind: str
    size: int
    modified: float

    @property
    def name(self) -> str:
        return f"{self.path}/" if self.kind == "directory" else self.path


def names(folder: Folder, path: str = ".", *, depth: int = 1) -> Answer:
    """As a model reads it: names, directories with a slash after them."""
    above = opening.names(path)
    with opening.directory(folder.descriptor, above) as at:
        found = list(_first(MOST_NAMES + 1, _below(at, "/".join(above), depth)))
    entries, more = found[:MOST_NAMES], len(found) > MOST_NAMES
    lines = [shown(entry.name, longest=1_100) for entry in entries] or ["It is empty."]
    if more:
        lines.append(f"(Only the first {MOST_NAMES} are shown. List a single directory to see more.)")
    return Answer("\n".join(lines), {"entries": [_told(entry) for entry in entries], "more": more})


def files(folder: Folder) -> dict[str, Any]:
    """All regular files, as a person is shown them."""
    found = (entry for entry in _below(folder.descriptor, "", depth=64) if entry.kind == "file")
    first = list(_first(_MOST_FILES + 1, found))
    return {"files": [_told(entry) for entry in first[:_MOST_FILES]], "more": len(first) > _MOST_FILES}


def state(folder: Folder) -> dict[str, Entry] | None:
    """The regular files as they are, to be compared; None where there are too many."""
    found = (entry for entry in _below(folder.descriptor, "", depth=64) if entry.kind == "file")
    first = list(_first(_MOST_COMPARED + 1, found))
    return {entry.path: entry for entry in first} if len(first) <= _MOST_COMPARED else None


def changed(before: dict[str, Entry] | None, now: dict[str, Entry] | None) -> list[dict[str, Any]]:
    """The first files that are new or differ, by what the system tells of them."""
    if before is None or now is None:
        return []
    found = [entry for path, entry in now.items() if before.get(path) != entry][:_MOST_CHANGED]
    return [{"path": _readable(entry.path), "bytes": entry.size} for entry in found]


def _below(at: int, path: str, depth: int) -> Iterator[Entry]:
    for found in walking.entries(at):
        try:
            status = found.stat(follow_symlinks=False)
        except FileNotFoundError:  # removed meanwhile
            continue
        here = f"{path}/{found.name}" if path else found.name
        kind = _KINDS.get(stat.S_IFMT(status.st_mode), "other")
        yield Entry(here, kind, status.st_size, status.st_mtime)
        if kind == "directory" and depth > 1 and found.name != _NOT_ENTERED:
            with suppress(OSError), walking.entered(at, found.name) as below:
                yield from _below(below, here, depth - 1)


def _first(most: int, entries: Iterator[Entry]) -> Iterator[Entry]:
    for _, entry in zip(range(most), entries, strict=False):
        yield entry


def _told(entry: Entry) -> dict[str, Any]:
    return {"path": _readable(entry.path), "kind": entry.kind, "size": entry.size, "modified": entry.modified}


def _readable(path: str) -> str:
    """Whatever bytes a name has, JSON has none for what is no text."""
    return os.fsencode(path).decode(errors="replace")
