"""Dates in what is said, as arguments of the task tools. What the words mean is for `english` to say."""

from collections.abc import Callable
from datetime import datetime
from functools import lru_cache

import english
from offline_model.rules.language import vocabulary
from offline_model.rules.language.text import Text

_MOST_WORDS = 10
_PLANNED = frozenset(["due", "planned", "scheduled", "happening", "coming", "for", "on"])

When = dict[str, str]
"""The arguments `due` and `repeat` of a tool."""
_read_task, _read_when = lru_cache(1_000)(english.read_task), lru_cache(1_000)(english.read_when)


def _now(text: Text) -> datetime:
    """Where nobody says what the user's clock shows, it is this machine's."""
    return text.now or datetime.now().replace(second=0, microsecond=0)


def reading_of(text: Text) -> english.Reading:
    """What a text says of a task."""
    return _read_task(text.raw, _now(text), text.order)


def fields_of(when: english.When | None) -> When:
    if when is None:
        return {}
    return {"due": when.due, **({"repeat": when.repeat} if when.repeat else {})}


def read(text: Text) -> When | None:
    """What the whole text means as a date; a time only if no day is named, so that a task keeps its own."""
    when = _read_when(text.raw, _now(text), text.order)
    if when and when.is_time_only and when.time:
        return {"due": f"{when.time:%H:%M}"}
    return fields_of(when) or None


def shift_of(text: Text) -> str | None:
    return english.read_shift(text.raw)


def new_due(text: Text) -> str | When | None:
    """What a date is moved to: a day, a time, or "a week" for so much later."""
    return shift_of(text) or read(text)


def moved(text: Text) -> str | When | None:
    """Of "Friday to Saturday", said after "from", the latter."""
    at = next((at for at, key in enumerate(text.keys) if key == "to"), len(text.keys))
    return new_due(text.part(at + 1, len(text.keys))) if at < len(text.keys) and read(text.part(0, at)) else None


def earlier(text: Text) -> str:
    """Of "a day", by which something is to be moved forward: "-1d"."""
    return (shift_of(text) or "").replace("+", "-")


def corrected(text: Text) -> When | None:
    """Of "at 14:30, not 14:00" the former."""
    end = next((at for at, key in enumerate(text.keys) if key in ("not", "instead", "rather")), len(text.keys))
    when = read(text.part(0, end)) if end else None
    return None if when and "repeat" in when else when


def period(text: Text) -> When | None:
    """Of "Monday", said after "every"."""
    return read(text.with_raw(f"every {text.raw}"))


def range_of(text: Text) -> str | None:
    """Which days a list of open tasks is asked for."""
    return english.read_coming_range(text.raw, _now(text), text.order)


def past_of(text: Text) -> str | None:
    """On which days things were done that a list is asked for."""
    return english.read_past_range(text.raw, _now(text))


def is_today(text: Text) -> bool:
    """Whether today is asked for, as in "do I have to do today", said after "what"."""
    return asked_for(text) == english.When(_now(text).date()).due


def asked_for(text: Text) -> str | None:
    """Of "do I have to do this week", said after "what", the days."""
    tail = _asked_at_end(text, range_of, vocabulary.LIST_WORDS | _PLANNED)
    return range_of(tail) if tail else None


def asked_for_done(text: Text) -> str | None:
    """The same of "did I do last week"."""
    tail = _asked_at_end(text, past_of, vocabulary.LIST_WORDS)
    head = text.keys[: len(text.keys) - len(tail.keys)] if tail else []
    return past_of(tail) if tail and not vocabulary.DONE_WORDS.isdisjoint(head) else None


def days_at_end(text: Text) -> Text:
    """The words of the days in what was asked for."""
    tail = _asked_at_end(text, lambda part: range_of(part) or past_of(part), vocabulary.LIST_WORDS | _PLANNED)
    return tail or text


def _asked_at_end(text: Text, days: Callable[[Text], str | None], words: frozenset[str]) -> Text | None:
    size = len(text.keys)
    tails = (text.part(first, size) for first in range(max(0, size - _MOST_WORDS), size))
    tail = next((tail for tail in tails if days(tail)), None)
    return tail if tail and words.issuperset(text.keys[: size - len(tail.keys)]) else None
