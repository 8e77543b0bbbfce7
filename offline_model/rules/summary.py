"""A short extractive summary, for requests that bring a text and no tools."""

import re
from collections.abc import Sequence

from offline_model.protocol import Message

_WANTED = re.compile(r"summari[sz]e", re.IGNORECASE)
_BULLET = re.compile(r"^\s*(?:[-*•#>]+|\d+[.)])\s*")
LINES = 8
LINE_CHARACTERS = 160


def wants_summary(messages: Sequence[Message]) -> bool:
    return bool(_WANTED.search(messages[-1].content)) or any(
        _WANTED.match(message.content.strip()) for message in messages if message.role in ("system", "developer")
    )


def summary_of(messages: Sequence[Message]) -> str:
    """The first line and the last ones of what was given, each cut short."""
    last = "\n".join(line for line in messages[-1].content.splitlines() if not _WANTED.search(line))
    earlier = [message.content for message in messages[:-1] if message.role not in ("system", "developer")]
    lines = _lines(last) or [line for text in earlier for line in _lines(text)]
    if not lines:
        return "There is nothing to summarise."
    chosen = lines if len(lines) <= LINES else [lines[0], *lines[-(LINES - 1) :]]
    return "\n".join(chosen)


def _lines(text: str) -> list[str]:
    lines = (" ".join(_BULLET.sub("", line).split()) for line in text.splitlines())
    return [line if len(line) <= LINE_CHARACTERS else line[: LINE_CHARACTERS - 1] + "…" for line in lines if line]
