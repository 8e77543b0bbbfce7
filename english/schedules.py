"""Reads a text as something to be done again and again: its repeat and time, at its beginning or end, and the rest."""

from dataclasses import dataclass
from datetime import date, datetime
from datetime import time as clock_time

from english.atoms import DateOrder
from english.dates.combination import When
from english.reading import read_when
from english.words import WEEKDAYS, word_set

_MAX_WORDS = 12  # of the repeat and time
# What a repeat at the end begins with: in "what is due today every morning at 7", "due today" is no part of it.
_FIRST = word_set("every each at on once daily weekly monthly yearly annually weekdays")
_POLITE = word_set("please pls plz thanks thx")  # before a repeat at the beginning, or after one at the end


@dataclass(frozen=True)
class ParsedSchedule:
    text: str
    repeat: str
    time: clock_time | None = None


def read_schedule(text: str, now: datetime, order: DateOrder | None = None) -> ParsedSchedule | None:
    """Returns None for a text that does not begin or end with a repeat."""
    words = text.split()
    first = next((at for at, word in enumerate(words) if not _is_polite(word)), 0)
    end = next((at for at in range(len(words), first, -1) if not _is_polite(words[at - 1])), first)
    for count in range(min(_MAX_WORDS, end - first), 0, -1):
        if when := _read_repeat(words[first : first + count], now, order):
            return _create(words[first + count :], when)
        if words[end - count].lower() in _FIRST and (when := _read_repeat(words[end - count : end], now, order)):
            return _create(words[: end - count], when)
    return None


def _is_polite(word: str) -> bool:
    return word.lower().strip(",.!") in _POLITE


def _read_repeat(words: list[str], now: datetime, order: DateOrder | None) -> When | None:
    when = read_when(" ".join(words), now, order)
    return when if when is not None and when.repeat is not None else None


def _create(words: list[str], when: When) -> ParsedSchedule:
    assert when.repeat is not None
    return ParsedSchedule(" ".join(words).strip(" ,:;"), _add_day(when.repeat, when.day), when.time)


def _add_day(rule: str, day: date) -> str:
    """Adds the day to a rule that has none: that of a task would be its due date."""
    if "BYDAY" in rule or "BYMONTHDAY" in rule:
        return rule
    match rule.split(";")[0]:
        case "FREQ=WEEKLY":
            return f"{rule};BYDAY={WEEKDAYS[day.weekday()][:2].upper()}"
        case "FREQ=MONTHLY":
            return f"{rule};BYMONTHDAY={day.day}"
        case "FREQ=YEARLY":
            return f"{rule};BYMONTH={day.month};BYMONTHDAY={day.day}"
        case _:
            return rule
