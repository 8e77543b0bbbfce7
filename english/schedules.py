"""Reads a text as something to be done again and again: its repeat and time, at its beginning or end, and the rest."""

from dataclasses import dataclass
from datetime import datetime
from datetime import time as clock_time

from english.atoms import DateOrder
from english.reading import When, read_when

_MAX_WORDS = 12  # of the repeat and time


@dataclass(frozen=True)
class ParsedSchedule:
    text: str
    repeat: str
    time: clock_time | None = None


def read_schedule(text: str, now: datetime, order: DateOrder | None = None) -> ParsedSchedule | None:
    """Returns None for a text that does not begin or end with a repeat."""
    words = text.split()
    for count in range(min(_MAX_WORDS, len(words)), 0, -1):
        if when := _read_repeat(words[:count], now, order):
            return _create(words[count:], when)
        if when := _read_repeat(words[-count:], now, order):
            return _create(words[:-count], when)
    return None


def _read_repeat(words: list[str], now: datetime, order: DateOrder | None) -> When | None:
    when = read_when(" ".join(words), now, order)
    return when if when is not None and when.repeat is not None else None


def _create(words: list[str], when: When) -> ParsedSchedule:
    assert when.repeat is not None
    return ParsedSchedule(" ".join(words).strip(" ,:;"), when.repeat, when.time)
