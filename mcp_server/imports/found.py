"""What a file holds, as the formats read it: tasks that nobody has checked yet, and what cannot be read."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True)
class Found:
    """A task of a file, in the words of `add_task`."""

    place: str
    """Where it stands: "line 14"."""
    identity: tuple[object, ...]
    """What makes it the same task when the file is read again; equal ones are told apart by their number."""
    title: str
    description: str = ""
    due: str | None = None
    priority: str | None = None
    labels: tuple[str, ...] = ()
    repeat: str | None = None
    completed: bool = False
    created_at: datetime | None = None
    updated_at: datetime | None = None
    completed_at: datetime | None = None
    original: tuple[int, datetime] | None = None
    """The id that the task had when it was exported, and when it was made."""


@dataclass(frozen=True)
class Unread:
    """What cannot be read, and why: one sentence that says what to write instead."""

    place: str
    why: str


class FileUnread(Exception):
    """Nothing of the file can be read; its text is the sentence why."""


class PartUnread(Exception):
    """A part of a task cannot be read; its text is the sentence why."""


Read = Iterator[Found | Unread]
