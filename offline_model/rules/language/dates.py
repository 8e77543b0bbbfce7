"""Dates in what is said, turned into the tools' words for dates; the day itself is found by the tools' server.

Only a phrase that is understood as a whole is taken: of "in 3 days at noon", for which the tools have no words, nothing
is. An hour without "am" or "pm" is one of the day: 7 to 12 in the morning, 1 to 6 in the afternoon.
"""

import re

from offline_model.rules.language.text import Text
from offline_model.rules.language.vocabulary import PREPOSITIONS

When = dict[str, str]
"""The arguments `due` and `repeat` of a tool."""

_MOST_WORDS = 9
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_WEEKDAY = "|".join(_WEEKDAYS)
_MONTH = "jan|feb|mar|apr|may|june?|july?|aug|sept?|oct|nov|dec"
_COUNTS = {"a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "ten": 10}
_PARTS_OF_DAY = {"morning": "09:00", "noon": "12:00", "afternoon": "15:00", "evening": "19:00"}
_FREQUENCIES = {"day": "DAILY", "week": "WEEKLY", "month": "MONTHLY", "year": "YEARLY"}
_CLOCK = r"(?:at |by |@ ?)?\d\d?(?::\d\d)? ?(?:am|pm|a\.m\.?|p\.m\.?)|(?:at |by |@ ?)\d\d?(?: o'clock)?" + (
    r"|(?:at |by |@ ?)?\d\d?:\d\d|(?:at |by )noon"
)
_DAY = (
    rf"(?:(?:due )?(?:on|by) |due )?(?:(?:this |next |the coming )?(?:{_WEEKDAY})|today|tomorrow|\d{{4}}-\d\d-\d\d)"
    r"|for (?:today|tomorrow)|tonight|next (?:week|month)"
    rf"|in (?:\d{{1,3}}|{'|'.join(_COUNTS)}) (?:day|week|month)s?"
    r"|(?:every|each) (?:other |\d{1,3} )?(?:day|week|month|year)s?"
    rf"|(?:every|each) (?:{_WEEKDAY}|weekday|morning|evening)"
)
_WHEN = [
    re.compile(rf"(?P<day>{_DAY})?(?:^|,? |$)(?P<clock>{_CLOCK}|morning|afternoon|evening)?"),
    re.compile(rf"(?P<clock>{_CLOCK}),? (?P<day>{_DAY})"),
]
_HOURS = re.compile(r"(\d\d?)(?::(\d\d))? ?([ap])?")
_REPEAT = re.compile(rf"(?:every|each) (?:(other|\d{{1,3}}) )?({_WEEKDAY}|[a-z]+?)s?")
_SHIFT = re.compile(r"(?:in )?(\w+) (day|week|month)s?")
_UNFINISHED = PREPOSITIONS | {"a", "an", "the", "my", "our", "this", "that", "last", "next", "black", "good"}
"""Words after which a date belongs to what is before it."""
_NUMBERS = re.compile(rf"#|\d.*|(?:{_MONTH})\w*")


def read(text: Text) -> When | None:
    """What the whole text means, None if it is no date."""
    said = text.raw.casefold().strip(" ,:;()?!").removeprefix("from ").removeprefix("starting ")
    for pattern in _WHEN:
        found = pattern.fullmatch(said) if said else None
        if found and (found["day"] or found["clock"] not in _PARTS_OF_DAY):
            return _when(found["day"] or "", found["clock"] or "")
    return None


def shift_of(text: Text) -> str | None:
    """Of "a week" or "3 days": "+1w", "+3d"."""
    found = _SHIFT.fullmatch(text.raw.casefold())
    if not found:
        return None
    count = _COUNTS.get(found[1]) or (int(found[1]) if re.fullmatch("[1-9][0-9]{0,2}", found[1]) else 0)
    return f"+{count}{found[2][0]}" if count else None


def new_due(text: Text) -> str | dict[str, str] | None:
    """What a date is moved to: a day, a time, or "a week" for so much later."""
    return shift_of(text) or read(text)


def period(text: Text) -> When | None:
    """Of "Monday", said after "every"."""
    return read(text.with_raw(f"every {text.raw}"))


def range_of(text: Text) -> str | None:
    """Which days a list is asked for: of "by Friday" all up to that day."""
    said = text.raw.casefold().strip(" ,:?!")
    if said in ("this week", "the rest of the week"):
        return "today..sunday"
    day = said.removeprefix("on ").removeprefix("for ").removeprefix("by ").removeprefix("this ").removeprefix("next ")
    is_day = day in ("today", "tomorrow", *_WEEKDAYS)
    return f"..{day}" if is_day and said.startswith("by ") else day if is_day else None


def taken_from(text: Text) -> tuple[Text, When]:
    """The text without the date at its end, and that date; the text as it is, if that is not all that tells a time."""
    first, when = _last(text)
    before = text.keys[first - 1] if when else ""
    rest = text.part(0, first)
    if not when or before in _UNFINISHED or _NUMBERS.fullmatch(before) or _last(rest)[1]:
        return text, {}
    return rest.with_raw(rest.raw.rstrip(" ,:;(-")), when


def _last(text: Text) -> tuple[int, When]:
    """The word at which the longest date at the end begins, and the date."""
    size = len(text.keys)
    starts = range(max(1, size - _MOST_WORDS), size)
    return next(((first, when) for first in starts if (when := read(text.part(first, size)))), (size, {}))


def leading(text: Text) -> tuple[When, Text] | None:
    """The date at the text's start, the longest that is understood, and what follows it."""
    for end in range(min(_MOST_WORDS, len(text.keys) - 1), 0, -1):
        if when := read(text.part(0, end)):
            return when, text.part(end, len(text.keys))
    return None


def _when(day: str, clock: str) -> When | None:
    time = _time(clock) if clock else ""
    if time is None:
        return None
    if day.startswith(("every", "each")):
        return _repeat(day, time)
    if day.startswith(("in ", "next week", "next month")):
        due = f"+1{day[5]}" if day[0] == "n" else _shift(day)
        return {"due": due} if due and not time else None
    word = "today" if day == "tonight" else day.rpartition(" ")[2]
    return {"due": f"{word} {time}".strip()}


def _shift(day: str) -> str | None:
    return shift_of(Text.of(day.removeprefix("in ")))


def _repeat(day: str, time: str) -> When | None:
    found = _REPEAT.fullmatch(day)
    if not found:
        return None
    interval, unit = found[1], found[2]
    if unit in _PARTS_OF_DAY:
        time, unit = time or _PARTS_OF_DAY[unit], "day"
    if unit in _WEEKDAYS:
        return {"due": f"{unit} {time}".strip(), "repeat": f"FREQ=WEEKLY;BYDAY={unit[:2].upper()}"}
    if unit == "weekday":
        return {"due": time or "today", "repeat": "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR"}
    if unit not in _FREQUENCIES or interval == "0":
        return None
    every = f";INTERVAL={2 if interval == 'other' else int(interval)}" if interval else ""
    return {"due": time or "today", "repeat": f"FREQ={_FREQUENCIES[unit]}{every}"}


def _time(clock: str) -> str | None:
    """Of "at 5 pm" and "5 in the afternoon": "17:00"; None if no clock shows it."""
    word = clock.rpartition(" ")[2]
    if word in _PARTS_OF_DAY:
        return _PARTS_OF_DAY[word]
    found = _HOURS.search(clock)
    if not found:
        return None
    hour, minute, half = int(found[1]), int(found[2] or 0), found[3]
    if half:
        hour = hour % 12 + (12 if half == "p" else 0) if 1 <= hour <= 12 else 99
    elif not found[2] and 1 <= hour <= 6:
        hour += 12
    return f"{hour:02}:{minute:02}" if hour < 24 and minute < 60 else None
