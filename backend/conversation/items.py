"""What a conversation holds, as values; `rows` knows how they are stored."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from service.database import new_id, utc_now

Json = dict[str, Any]
WhatNext = Literal["go on", "ask again", "nothing"]
"""What a person can do about an answer that did not come to its end."""


@dataclass(frozen=True, kw_only=True)
class Said:
    """What the person wrote: as text, and as the protocol that they wrote it in has it."""

    text: str
    body: Json
    id: str = field(default_factory=lambda: new_id("msg"))
    created_at: datetime = field(default_factory=utc_now)


@dataclass(kw_only=True)
class Message:
    """What the assistant says; it grows while the model speaks. `usage` is what its request took."""

    id: str
    parts: list[str] = field(default_factory=list[str])
    usage: Json | None = None
    created_at: datetime = field(default_factory=utc_now)

    @property
    def text(self) -> str:
        return "\n".join(self.parts)


@dataclass(kw_only=True)
class Thought:
    """What the model thinks before it speaks; it grows too. `seconds` is how long it took, once it has ended."""

    id: str
    text: str = ""
    seconds: int | None = None
    created_at: datetime = field(default_factory=utc_now)


@dataclass(kw_only=True)
class Work:
    """What an agent does for the assistant; it grows too, by steps: `title`, `content`, `icon`, and a `state`, which is
    running, done, failed or none. `ended` says how it ended, once it has.
    """

    agent: str = ""
    steps: list[Json] = field(default_factory=list[Json])
    ended: str | None = None
    id: str = field(default_factory=lambda: new_id("wf"))
    created_at: datetime = field(default_factory=utc_now)


@dataclass(frozen=True, kw_only=True)
class Widget:
    """Tasks to look at and to tick; `copy_text` is what copying it gives."""

    root: Json
    copy_text: str
    id: str = field(default_factory=lambda: new_id("wid"))
    created_at: datetime = field(default_factory=utc_now)


@dataclass(frozen=True, kw_only=True)
class Ending:
    """Why an answer did not come to its end, for whoever reads the conversation later."""

    sentence: str
    next: WhatNext
    id: str = field(default_factory=lambda: new_id("end"))
    created_at: datetime = field(default_factory=utc_now)


@dataclass(frozen=True, kw_only=True)
class Summarised:
    """The line that people see where so many messages before it were summarised for the model."""

    messages: int
    id: str = field(default_factory=lambda: new_id("cmp"))
    created_at: datetime = field(default_factory=utc_now)


@dataclass(frozen=True, kw_only=True)
class Hidden:
    """What the model reads and no client sees; `content` has its `kind`; `usage` is what a step took to ask for."""

    content: Json
    usage: Json | None = None
    id: str = field(default_factory=lambda: new_id("step"))
    created_at: datetime = field(default_factory=utc_now)


Item = Said | Message | Thought | Work | Widget | Ending | Summarised | Hidden
