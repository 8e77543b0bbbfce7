"""The tasks of a file before they are checked, and the parts of the file that are left out."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any


@dataclass(frozen=True)
class FileTask:
    """A task of a file."""

    location: str
    """Such as "line 14"."""
    identity: tuple[object, ...]
    """Identifies the task when the file is read again; equal tasks are numbered."""
    arguments: Mapping[str, object]
    """Those of `add_task`, not checked yet."""
    lost: tuple[str, ...] = ()
    """The columns of the file with a value that no field of a task can hold."""
    completed: bool = False
    created_at: datetime | None = None
    updated_at: datetime | None = None
    completed_at: datetime | None = None
    original: tuple[int, datetime] | None = None
    """The id and creation time of an exported task."""
    series: int | None = None
    """The id, in the file, of the first task of an exported repeat."""
    stored: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Fields of an exported task that are stored as they are."""


@dataclass(frozen=True)
class UnreadLine:
    """A line that cannot be read; `why` says what to write instead."""

    location: str
    why: str


@dataclass(frozen=True)
class NoTask:
    """A part of the file that does not belong to a task."""

    name: str


class FileUnread(Exception):
    """The whole file cannot be read; the text says why."""


class UnreadPart(Exception):
    """A part of a task cannot be read; the text says why."""


FileTasks = Iterator[FileTask | UnreadLine | NoTask]


def split_labels(words: Sequence[str], signs: str) -> tuple[str, tuple[str, ...]]:
    """Returns the text without the labels at its ends, and all labels; those within the text are part of its sense."""
    labels = tuple(word[1:] for word in words if _is_label(word, signs))
    start, end = 0, len(words)
    while start < end and _is_label(words[start], signs):
        start += 1
    while end > start and _is_label(words[end - 1], signs):
        end -= 1
    return " ".join(words[start:end]), labels


def _is_label(word: str, signs: str) -> bool:
    return len(word) > 1 and word[0] in signs
