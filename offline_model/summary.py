"""A short extractive summary, for requests that bring a text and no tools."""

import re
from collections.abc import Sequence

from offline_model.protocol import Message

_WANTED = re.compile(r"\s*(?:please )?summari[sz]e", re.IGNORECASE)
LINES = 8
LINE_CHARACTERS = 160
_READ = 2 * LINES * LINE_CHARACTERS


def summary_of(messages: Sequence[Message]) -> str | None:
    """The first line and the last ones, each cut short; None unless the instructions or the text begin with that."""
    instructions = [message.content for message in messages if message.role in ("system", "developer")]
    if not any(_WANTED.match(text[:LINE_CHARACTERS]) for text in [*instructions, messages[-1].content]):
        return None
    said = "\n".join(message.content for message in messages if message.role not in ("system", "developer"))
    both = [*said[:_READ].splitlines(), *said[-_READ:].splitlines()]
    lines = [line.strip(" \t-*#>")[:LINE_CHARACTERS] for line in both]
    kept = list(dict.fromkeys(line for line in lines if line and not _WANTED.match(line)))
    return "\n".join([*kept[:1], *kept[1:][1 - LINES :]]) or "There is nothing to summarise."
