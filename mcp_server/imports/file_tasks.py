"""What a file holds, as the formats read it: tasks that nobody has checked yet, and what cannot be read."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True)
class FileTask:
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


Read = Iterator[FileTask | Unread]


def without_labels(words: Sequence[str], signs: str) -> tuple[str, tuple[str, ...]]:
    """The text of the words, and the labels among them.

    A label at either end is no part of the text. One between other words stays, because the text would lose its sense.
    """
    labels = tuple(word[1:] for word in words if _is_label(word, signs))
    start, end = 0, len(words)
    while start < end and _is_label(words[start], signs):
        start += 1
    while end > start and _is_label(words[end - 1], signs):
        end -= 1
    return " ".join(words[start:end]), labels


def _is_label(word: str, signs: str) -> bool:
    return len(word) > 1 and word[0] in signs
