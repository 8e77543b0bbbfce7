"""How something repeats, as people say it: rows of what is said, its rule, and the first time."""

import re
from collections.abc import Callable
from datetime import date, timedelta

from offline_model.rules.language import days
from offline_model.rules.language.clock import PARTS_OF_DAY
from offline_model.rules.language.days import COUNT, MONTH, UNIT, WEEKDAY, WEEKDAYS

_FREQUENCIES = {"day": "DAILY", "week": "WEEKLY", "month": "MONTHLY", "year": "YEARLY"}
_ADVERBS = {"daily": "day", "weekly": "week", "monthly": "month", "yearly": "year", "annually": "year"}
_EVERY = "(?:every|each)"
_ORDINALS = {"first": 1, "1st": 1, "second": 2, "2nd": 2, "third": 3, "3rd": 3, "fourth": 4, "4th": 4, "last": -1}
_ORDINAL = "|".join(_ORDINALS)
_TH = "(?:st|nd|rd|th)"
_AND_WEEKDAYS = rf"(?:(?:, and|,| and|&| &) (?:{WEEKDAY})s?)*"
_DID = (
    "(?:(?:i|we) (?:last |have |'ve )*(?:do|did|done|finish|finished|complete|completed)(?: it| that| this)?(?: last)?"
    "|(?:it is|it's) (?:done|finished)|(?:the )?last time|completion|(?:doing|finishing|completing) it)"
)

When = dict[str, str]
"""The arguments `due` and `repeat` of a tool; an empty `due` is today, or the clock time given beside it."""


def _rule(frequency: str, *more: str, interval: int = 1, due: str = "") -> When:
    every = [f"INTERVAL={interval}"] if interval > 1 else []
    return {"due": due, "repeat": ";".join([f"FREQ={frequency}", *every, *more])}


def _each(today: date | None, count: str | None, unit: str) -> When:
    number = 2 if count in ("other", "second") else days.count_of(count) if count else 1
    return _rule(_FREQUENCIES[unit], interval=number)


def _on_weekdays(today: date | None, words: str, *, interval: int = 1) -> When:
    found = sorted({days.weekday_of(word) for word in re.findall(WEEKDAY, words)})
    first = min(found, key=lambda at: (at - today.weekday() - 1) % 7) if today else found[0]
    by_day = ",".join(WEEKDAYS[at][:2].upper() for at in found)
    return _rule("WEEKLY", f"BYDAY={by_day}", interval=interval, due=WEEKDAYS[first])


def _every_other(today: date | None, count: str, word: str) -> When:
    number = 2 if count in ("other", "second") else days.count_of(count)
    return _on_weekdays(today, word, interval=number)


def _working_days(today: date | None) -> When:
    is_free = today is not None and today.weekday() > 4
    return _rule("WEEKLY", "BYDAY=MO,TU,WE,TH,FR", due="monday" if is_free else "")


def _on_day_of_month(today: date | None, day: str) -> When | None:
    first = days.day_of_month(today, day) if today else None
    return _rule("MONTHLY", due=days.shown(first)) if first else None


def _on_day_of_year(today: date | None, day: str, month: str) -> When | None:
    first = days.day_of_year(today, day, month) if today else None
    return _rule("YEARLY", due=days.shown(first)) if first else None


def _on_weekday_of_month(today: date | None, ordinal: str, word: str) -> When | None:
    if today is None:
        return None
    number, weekday = _ORDINALS[ordinal], days.weekday_of(word)
    months = (days.month(today, later) for later in range(3))
    found = [_nth(month, number, weekday) for month in months]
    first = next(day for day in found if day >= today)
    return _rule("MONTHLY", f"BYDAY={number}{WEEKDAYS[weekday][:2].upper()}", due=days.shown(first))


def _nth(month: date, number: int, weekday: int) -> date:
    if number < 0:
        last = days.last_of_month(month)
        return last - timedelta(days=(last.weekday() - weekday) % 7)
    return month + timedelta(days=(weekday - month.weekday()) % 7 + 7 * (number - 1))


def _end_of_month(today: date | None) -> When | None:
    return _rule("MONTHLY", "BYMONTHDAY=-1", due=days.shown(days.last_of_month(today))) if today else None


def _after_done(today: date | None, count: str, unit: str) -> When:
    return _rule(_FREQUENCIES[unit], "FROM=DONE", interval=days.count_of(count))


_ROWS: tuple[tuple[re.Pattern[str], Callable[..., When | None]], ...] = tuple(
    (re.compile(source), function)
    for source, function in (
        (rf"{_EVERY} (?:(other|second|{COUNT}) )?{UNIT}", _each),
        (f"({'|'.join(_ADVERBS)})", lambda today, word: _each(today, None, _ADVERBS[word])),
        (rf"{_EVERY} single day", lambda today: _each(today, None, "day")),
        (rf"{_EVERY} ({'|'.join(PARTS_OF_DAY)})", lambda today, part: _rule("DAILY", due=PARTS_OF_DAY[part])),
        (rf"{_EVERY} ((?:{WEEKDAY})s?{_AND_WEEKDAYS})", _on_weekdays),
        (rf"(?:weekly )?on ((?:{WEEKDAY})s{_AND_WEEKDAYS})", _on_weekdays),
        (rf"{_EVERY} (other|second) ({WEEKDAY})", _every_other),
        (rf"{_EVERY} ({COUNT}) weeks on ({WEEKDAY})s?", _every_other),
        (rf"weekly on ({WEEKDAY})", _on_weekdays),
        (rf"{_EVERY} (?:weekday|working day|workday)s?|on (?:weekdays|workdays)", _working_days),
        (rf"{_EVERY} weekend|on weekends", lambda today: _on_weekdays(today, "saturday sunday")),
        (rf"(?:{_EVERY} month|monthly) on the (\d\d?){_TH}", _on_day_of_month),
        (rf"(?:on )?the (\d\d?){_TH} (?:of (?:the|every|each) month|{_EVERY} month)", _on_day_of_month),
        (rf"{_EVERY} (\d\d?){_TH}(?: of the month)?", _on_day_of_month),
        (rf"{_EVERY} year on (?:the )?(\d\d?){_TH}?(?: of)? ({MONTH})", _on_day_of_year),
        (rf"{_EVERY} (\d\d?){_TH}?(?: of)? ({MONTH})", _on_day_of_year),
        (rf"{_EVERY} ({MONTH}) (\d\d?){_TH}?", lambda today, month, day: _on_day_of_year(today, day, month)),
        (rf"{_EVERY} ({_ORDINAL}) ({WEEKDAY})(?: of the month)?", _on_weekday_of_month),
        (rf"(?:on )?the ({_ORDINAL}) ({WEEKDAY}) of (?:the|every|each) month", _on_weekday_of_month),
        (r"(?:at |on )?(?:the )?(?:end|last day) of (?:every|each) month", _end_of_month),
        (rf"(?:{_EVERY} )?({COUNT}) {UNIT} after {_DID}", _after_done),
    )
)
EVERY = days.without_groups(_ROWS)


def repeat_of(said: str, today: date | None) -> When | None:
    for pattern, function in _ROWS:
        if found := pattern.fullmatch(said):
            return function(today, *found.groups())
    return None
