"""Dates in what is said, turned into the tools' words for dates.

Only a phrase that is understood as a whole is taken: at the end of a text, at its start, or before a preposition.
"""

import re
from collections.abc import Callable
from datetime import date, datetime, timedelta

from offline_model.rules.language import days, ranges, repeats, vocabulary
from offline_model.rules.language.clock import CLOCK, LATE, PARTS_OF_DAY, time_of
from offline_model.rules.language.days import COUNT, DAY, MONTH, UNIT
from offline_model.rules.language.repeats import EVERY, When
from offline_model.rules.language.text import Text
from offline_model.rules.language.vocabulary import PREPOSITIONS

_MOST_WORDS = 10
_MOST_STARTS = 50
_WHEN = [
    re.compile(rf"(?P<day>{EVERY}|{DAY})?(?:^|,? |$)(?P<clock>{CLOCK}|{'|'.join(PARTS_OF_DAY)})?"),
    re.compile(rf"(?P<clock>{CLOCK}),? (?P<day>{EVERY}|{DAY})"),
]
_THIS = re.compile(r"\bthis (?=morning|afternoon|evening)")
_SOON = re.compile(rf"in (?:(half an|{COUNT}|[1-9]\d\d?) (hour|minute)s?|half an hour)")
_BARE_HOUR = re.compile(r"(?:at |by |@ ?)(?:\d\d?|[a-z]+)(?: o'clock)?")
_SHIFT = re.compile(rf"({COUNT}) {UNIT}")
_UNFINISHED = PREPOSITIONS | {"a", "an", "the", "my", "our", "this", "that", "last", "next", "black", "good"}
"""Words after which a date belongs to what is before it."""
_PART_OF_DATE = re.compile(rf"\d+(?:st|nd|rd|th)|(?:{MONTH})|:|days?|weeks?|months?|hours?|minutes?|every|each")
_PLANNED = frozenset(["due", "planned", "scheduled", "happening", "coming", "for", "on"])
_BEFORE_NUMBER = PREPOSITIONS | {":", "every", "each"}


def read(text: Text) -> When | None:
    """What the whole text means, None if it is no date."""
    said = _THIS.sub("today ", text.raw.casefold().strip(" ,:;()?!"))
    return _read(said, text.now) or _starting(said, text.now) or _soon(said, text.now)


def _read(said: str, now: datetime | None) -> When | None:
    for pattern in _WHEN:
        found = pattern.fullmatch(said) if said else None
        if found and (found["day"] or found["clock"] not in PARTS_OF_DAY):
            return _when(found["day"] or "", found["clock"] or "", now)
    return None


def _when(day: str, clock: str, now: datetime | None) -> When | None:
    today = now.date() if now else None
    time = time_of(clock, late=day.endswith(LATE) or (not day and _is_late(clock, now))) if clock else ""
    if time is None:
        return None
    if repeat := repeats.repeat_of(day, today) if day else None:
        due = repeat["due"]
        return repeat | {"due": (time if ":" in due else f"{due} {time}".strip()) or due or "today"}
    due = days.day_of(day, today) if day else ""
    if isinstance(due, str) and due.startswith("+") and time:
        due = days.as_date(due, today) if today else None
    word = days.shown(due) if isinstance(due, date) else due
    return None if word is None else {"due": f"{word} {time}".strip()}


def _is_late(clock: str, now: datetime | None) -> bool:
    """Whether "at 7" is of the evening, as it is said in the afternoon."""
    if now is None or now.hour < 12 or not _BARE_HOUR.fullmatch(clock):
        return False
    early, late = time_of(clock) or "", time_of(clock, late=True) or ""
    return early <= f"{now:%H:%M}" < late


def _starting(said: str, now: datetime | None) -> When | None:
    """Of "every 2 days starting tomorrow" the rule, and that day as the first."""
    rule, start, day = said.partition(" starting ")
    when, first = (_read(rule, now), _read(day, now)) if start else (None, None)
    if not when or not first or "repeat" not in when or "repeat" in first:
        return None
    clock = when["due"][-5:] if ":" in when["due"] and ":" not in first["due"] else ""
    return when | {"due": f"{first['due']} {clock}".strip()}


def _soon(said: str, now: datetime | None) -> When | None:
    """Of "in 2 hours": the day and the time."""
    found = _SOON.fullmatch(said) if now else None
    if not found or not now:
        return None
    count, unit = found[1] or "half an", found[2] or "hour"
    minutes = 30 if count == "half an" else days.count_of(count) * (60 if unit == "hour" else 1)
    then = now + timedelta(minutes=minutes)
    return {"due": f"{days.shown(then.date())} {then:%H:%M}"}


def shift_of(text: Text) -> str | None:
    """Of "a week" or "3 days": "+1w", "+3d"."""
    found = _SHIFT.fullmatch(text.raw.casefold().strip(" ?!.,"))
    shift = days.day_of(f"in {found[0]}", None) if found else None
    return shift if isinstance(shift, str) else None


def new_due(text: Text) -> str | When | None:
    """What a date is moved to: a day, a time, or "a week" for so much later."""
    return shift_of(text) or read(text)


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
    return ranges.coming(text.raw.casefold().strip(" ,:?!"), text.today)


def past_of(text: Text) -> str | None:
    """On which days things were done that a list is asked for."""
    return ranges.past(text.raw.casefold().strip(" ,:?!"), text.today)


def asked_for(text: Text) -> str | None:
    """Of "do I have to do this week", said after "what", the days; "today" only where it is all that is told."""
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


def taken_from(text: Text, *, inside: bool = False) -> tuple[Text, When]:
    """The text without its date, and that date; the text as it is, if that is not all that tells a time.

    The date stands at the end; with `inside` it may stand before "about", "with" and the like, too.
    """
    first, when = _last(text)
    if when:
        rest = text.part(0, first)
        return (text, {}) if _is_cut(text, first) or _last(rest)[1] else (_bare(text, rest.raw), when)
    found = _inside(text) if inside else None
    if found is None:
        return text, {}
    first, end, when = found
    return _bare(text, f"{text.part(0, first).raw} {text.part(end, len(text.keys)).raw}"), when


def _bare(text: Text, rest: str) -> Text:
    return text.with_raw(rest.strip().rstrip(" ,:;(-"))


def _is_cut(text: Text, first: int) -> bool:
    """Whether what stands before this word belongs to the date, or the date to it."""
    before, *earlier = [*reversed(text.keys[:first]), ""]
    is_number = before == "#" and (earlier[0] in _BEFORE_NUMBER or _PART_OF_DATE.fullmatch(earlier[0] or "-"))
    return before in _UNFINISHED or bool(is_number) or _PART_OF_DATE.fullmatch(before) is not None


def _last(text: Text) -> tuple[int, When]:
    """The word at which the longest date at the end begins, and the date."""
    size = len(text.keys)
    starts = range(max(1, size - _MOST_WORDS), size)
    return next(((first, when) for first in starts if (when := read(text.part(first, size)))), (size, {}))


def _inside(text: Text) -> tuple[int, int, When] | None:
    """The first date that is followed by a preposition: where it begins and ends."""
    size = len(text.keys)
    for end in range(2, min(size, _MOST_STARTS)):
        if text.keys[end] in PREPOSITIONS and text.keys[end + 1 : end + 2] != ["#"]:
            for first in range(max(1, end - _MOST_WORDS), end):
                if (when := read(text.part(first, end))) and not _is_cut(text, first):
                    return first, end, when
    return None


def leading(text: Text) -> tuple[When, Text] | None:
    """The date at the text's start, the longest that is understood, and what follows it."""
    for end in range(min(_MOST_WORDS, len(text.keys) - 1), 0, -1):
        if when := read(text.part(0, end)):
            return when, text.part(end, len(text.keys))
    return None
