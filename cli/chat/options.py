"""The options and exit statuses of `./todo chat`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

NEWEST = ""
"""In place of a conversation's id: the one that was used last."""
Exit = Literal[0, 1, 2, 3, 130]
DONE, FAILED, NO_SERVER, ASKS, STOPPED = 0, 1, 2, 3, 130


@dataclass(frozen=True)
class Options:
    """`thread` is a conversation's id or name, `NEWEST`, or None for a new one. Without a `url` it is found out."""

    directory: Path
    execute: str | None = None
    as_json: bool = False
    approve_all: bool = False
    thread: str | None = None
    model: str | None = None
    temperature: float | None = None
    debug: bool = False
    url: str | None = None
    token: str | None = None
    work_in: Path | None = None
    """The directory in which a new conversation works, instead of in a folder of its own."""
