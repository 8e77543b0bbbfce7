"""The table of phrases for days. To add one, add a row, and a phrase to the table of the tests."""

import re
from contextlib import suppress
from dataclasses import replace
from datetime import date
from datetime import time as clock_time

from english.atoms import (
    COUNT,
    MONTH,
    TH,
    UNIT,
    WEEKDAY,
    Clock,
    DateOrder,
    Day,
    Meaning,
    Rule,
    Unread,
    list_unread,
    parse_count,
    parse_month,
    parse_weekday,
    rule,
)
from english.calendar import (
    add_days,
    create_day,
    find_day_of_month,
    find_day_of_year,
    find_period,
    find_weekday,
)
from english.words import MONTHS, WEEKDAYS

_YEAR = r"(?:(?: ,)? (?P<year>(?:19|20)\d\d))?"
_NUMBER = rf"(?P<day>\d\d?)(?: ?{TH})?(?: of)?"
_WORD_NUMBERS = (
    *("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth"),
    *("eleventh", "twelfth", "thirteenth", "fourteenth", "fifteenth", "sixteenth", "seventeenth", "eighteenth"),
    *("nineteenth", "twentieth"),
)
_ORDINAL = rf"(?:(?:20|30) (?:- )?(?:{'|'.join(_WORD_NUMBERS[:9])})|{'|'.join(_WORD_NUMBERS)}|thirtieth)"
_DAY_MONTH = rf"(?:the )?(?:{_NUMBER}|(?P<word>{_ORDINAL}) of) (?P<month>{MONTH})(?: \.)?{_YEAR}"
_MONTH_DAY = rf"(?P<month>{MONTH})(?: \.)? (?:the )?(?:(?P<day>\d\d?)(?: ?{TH})?|(?P<word>{_ORDINAL})){_YEAR}"
_MOST_YEARS_AHEAD = 4  # of a year with two digits
_FRACTIONS = frozenset(["1/2", "1/3", "2/3", "1/4", "3/4", "1/5", "1/8", "7/11", "9/11"])
_IDIOMS = frozenset(["24/7", "50/50"])
_END_OF_DAY = "(?:(?:the )?end of (?:the )?day|eod|cob|(?:close|end) of business)"
_BY_END_OF_DAY = f"(?:{_END_OF_DAY}(?: on)? )?"
_TO = "(?:-|to|until)"
_END = "(?:the )?(?:end|last day) of (?:the |this )?"
_ENDS = {"eow": "week", "eom": "month", "month end": "month", "eoy": "year"}
_HOLIDAYS = {
    "christmas eve": (12, 24),
    "christmas day": (12, 25),
    "christmas": (12, 25),
    "xmas": (12, 25),
    "boxing day": (12, 26),
    "new year's eve": (12, 31),
    "new years eve": (12, 31),
    "new year's day": (1, 1),
    "halloween": (10, 31),
    "valentine's day": (2, 14),
    "valentines day": (2, 14),
}


def _create_day(day: date | None) -> Meaning:
    return Day(day, is_sure=True) if day else Unread()


def _read_weekday(clock: Clock, match: re.Match[str]) -> Meaning:
    word, which = match["weekday"], match["which"] or ""
    weekday = parse_weekday(word)
    if which and weekday == clock.today.weekday() and which.startswith("this"):
        return Unread()  # today, or in a week
    if which == "next" and weekday > clock.today.weekday():
        return _find_in_next_week(clock, weekday)  # not the one that is still to come in this week
    return Day(find_weekday(clock.today, weekday), is_short=word in ("sun", "sat", "wed") and not which)


def _find_in_next_week(clock: Clock, weekday: int) -> Meaning:
    return _create_day(add_days(find_period(clock.today, "week", 1)[0], weekday))


def _read_weeks_from_weekday(clock: Clock, match: re.Match[str]) -> Meaning:
    day = find_weekday(clock.today, parse_weekday(match["weekday"]))
    return _create_day(add_days(day, 7 * parse_count(match["count"] or "1")))


def _find_date(clock: Clock, match: re.Match[str]) -> date | None:
    """Returns None for a day that does not exist or is in the past."""
    month = parse_month(match["month"])
    day = int(match["day"]) if match["day"] else _parse_ordinal(match["word"])
    if match["year"]:
        return _reject_past(clock, create_day(int(match["year"]), month, day))
    this_year = create_day(clock.today.year, month, day) if clock.is_record else None
    return this_year or find_day_of_year(clock.today, month, day)


def _parse_ordinal(word: str) -> int:
    """Returns 21 for "20 - first", which is how "twenty-first" is spelt in the rules."""
    *tens, last = word.replace("-", "").split()
    return sum(map(int, tens)) + (30 if last == "thirtieth" else _WORD_NUMBERS.index(last) + 1)


def _reject_past(clock: Clock, day: date | None) -> date | None:
    return day if day and (day >= clock.today or clock.is_record) else None


def _read_date(clock: Clock, match: re.Match[str]) -> Meaning:
    """A date with a wrong weekday is not understood."""
    day = _find_date(clock, match)
    weekday = match.groupdict().get("weekday")
    if day and weekday and day.weekday() != parse_weekday(weekday):
        return Unread(reason=f"{day.day} {MONTHS[day.month - 1].title()} is a {WEEKDAYS[day.weekday()].title()}.")
    return Day(day, is_sure=bool(weekday or match["year"])) if day else Unread()


def _read_weekday_and_number(clock: Clock, match: re.Match[str]) -> Meaning:
    day = find_day_of_month(clock.today, int(match["day"]))
    return _create_day(day if day and day.weekday() == parse_weekday(match["weekday"]) else None)


def _read_day_of_month(clock: Clock, match: re.Match[str]) -> Meaning:
    of = match["of"] or "the month"
    first, last = find_period(clock.today, "month", int(of.startswith("next")))
    day = find_day_of_month(max(clock.today, first), int(match["day"]))
    return Day(day) if day and (of == "the month" or day <= last) else Unread()


def _read_range(clock: Clock, match: re.Match[str]) -> Meaning:
    """Reads the first day of "3 to 5 December"."""
    month = parse_month(match["month"])
    first = find_day_of_year(clock.today, month, int(match["first"]))
    is_one_month = match.groupdict().get("end") in (None, match["month"])
    is_forward = int(match["first"]) < int(match["last"]) or not is_one_month
    if not first or not is_forward:
        return Unread()
    last = find_day_of_year(first, parse_month(match.groupdict().get("end") or match["month"]), int(match["last"]))
    return Day(first, last=last)


def _read_iso(clock: Clock, match: re.Match[str]) -> Meaning:
    day = _reject_past(clock, create_day(int(match["year"]), int(match["month"]), int(match["day"])))
    with suppress(ValueError):
        time = clock_time.fromisoformat(match["time"]) if match["time"] else None
        return Day(day, time, is_sure=True) if day else Unread()
    return Unread()


def _read_numeric(clock: Clock, match: re.Match[str]) -> Meaning:
    """Reads a day and month that exist and are not ambiguous."""
    year = match.groupdict().get("year")
    if year and (len(year) == 3 or 0 in (int(match["first"]), int(match["second"])) or _is_number(clock, year)):
        return _LOOSE  # a version, a number of a part
    if match[0] in _FRACTIONS | _IDIOMS:
        return replace(_LOOSE, is_silent=match[0] in _IDIOMS)
    order = "day-first" if match["mark"] == "." else clock.order
    pair = _order_day_and_month(int(match["first"]), int(match["second"]), order)
    if pair is None or pair[1] > 12:
        return Unread()
    if year is None:
        day = find_day_of_year(clock.today, pair[1], pair[0])
    else:
        day = create_day(int(year) + (2000 if len(year) == 2 else 0), pair[1], pair[0])
    day = _reject_past(clock, day)
    return Day(day, is_sure=len(match[0]) > 5) if day else Unread()


def _is_number(clock: Clock, year: str) -> bool:
    return len(year) == 2 and not (clock.is_record or 0 <= int(year) + 2000 - clock.today.year <= _MOST_YEARS_AHEAD)


def _order_day_and_month(first: int, second: int, order: DateOrder | None) -> tuple[int, int] | None:
    """Returns day and month, if the numbers or the order distinguish them."""
    if first > 12 or first == second:
        return first, second
    if second > 12:
        return second, first
    if order is None:
        return None
    return (first, second) if order == "day-first" else (second, first)


def _read_holiday(clock: Clock, match: re.Match[str]) -> Meaning:
    day = find_day_of_year(clock.today, *_HOLIDAYS[match["holiday"]])
    return Day(day, needs_preposition=True) if day else Unread()


def _read_weekend(clock: Clock, match: re.Match[str]) -> Meaning:
    saturday, _ = find_period(clock.today, "weekend", int(match["which"] == "next"))
    return Day(max(clock.today, saturday), is_sure=match["which"] != "the")


def _read_end(clock: Clock, match: re.Match[str]) -> Meaning:
    unit = match["unit"] or _ENDS[match["short"]]
    return _create_day(find_period(clock.today, unit, 1 if match["next"] else 0)[1])


def _read_end_of_month(clock: Clock, match: re.Match[str]) -> Meaning:
    later = (parse_month(match["month"]) - clock.today.month) % 12
    return _create_day(find_period(clock.today, "month", later)[1])


DAYS: tuple[Rule, ...] = (
    rule(f"today|later today|{_END_OF_DAY}", lambda clock, _: _create_day(clock.today)),
    rule("tonight", lambda clock, _: Day(clock.today, is_sure=True, part="tonight")),
    rule(
        "this (?P<part>morning|afternoon|evening)",
        lambda clock, match: Day(clock.today, is_sure=True, part=match["part"]),
    ),
    rule(f"{_BY_END_OF_DAY}tomorrow", lambda clock, _: _create_day(add_days(clock.today, 1))),
    rule("(?:the )?day after tomorrow", lambda clock, _: _create_day(add_days(clock.today, 2))),
    rule(rf"{_BY_END_OF_DAY}(?:(?P<which>this coming|this|next|coming) )?(?P<weekday>{WEEKDAY})", _read_weekday),
    rule(
        rf"(?P<weekday>{WEEKDAY})(?: of)? next week|next week(?: on)?(?: ,)? (?P<other>{WEEKDAY})",
        lambda clock, match: _find_in_next_week(clock, parse_weekday(match["weekday"] or match["other"])),
    ),
    rule(rf"(?P<weekday>{WEEKDAY})(?P<count>) week", _read_weeks_from_weekday),
    rule("today week|a week today", lambda clock, _: _create_day(add_days(clock.today, 7))),
    rule("tomorrow week|a week tomorrow", lambda clock, _: _create_day(add_days(clock.today, 8))),
    rule(
        rf"(?P<count>{COUNT}) week (?:on|from|after)(?: next| this)? (?P<weekday>{WEEKDAY})", _read_weeks_from_weekday
    ),
    rule(rf"(?:(?P<weekday>{WEEKDAY})(?: ,)? )?{_DAY_MONTH}", _read_date),
    rule(rf"(?:(?P<weekday>{WEEKDAY})(?: ,)? )?{_MONTH_DAY}", _read_date),
    rule(rf"{_DAY_MONTH} (?:\( )?(?P<weekday>{WEEKDAY})(?: \))?", _read_date),
    rule(rf"(?P<day>\d\d?) - (?P<month>{MONTH}) - (?P<year>(?:19|20)\d\d)", _read_date),
    rule(rf"(?P<weekday>{WEEKDAY})(?: ,)? (?:the )?(?P<day>\d\d?) ?{TH}", _read_weekday_and_number),
    rule(rf"the (?P<day>\d\d?) ?{TH}(?: of (?P<of>this month|the month|next month))?", _read_day_of_month),
    rule(rf"(?:on|by|due|until) (?P<day>\d\d?) ?{TH}(?P<of>)(?! of )", _read_day_of_month),
    rule(rf"(?P<day>\d\d?) ?{TH} of (?P<of>this month|the month|next month)", _read_day_of_month),
    rule(
        rf"(?:from )?(?:the )?(?P<first>\d\d?){TH}? {_TO} (?:the )?(?P<last>\d\d?){TH}?(?: of)? (?P<month>{MONTH})",
        _read_range,
    ),
    rule(
        rf"(?:from )?(?P<month>{MONTH}) (?P<first>\d\d?){TH}? {_TO} (?:(?P<end>{MONTH}) )?(?P<last>\d\d?){TH}?",
        _read_range,
    ),
    rule(
        rf"(?:from )?(?:the )?(?P<first>\d\d?){TH}?(?: of)? (?P<month>{MONTH}) {_TO} "
        rf"(?:the )?(?P<last>\d\d?){TH}?(?: of)? (?P<end>{MONTH})",
        _read_range,
    ),
    rule(r"(?P<year>\d{4})(?P<mark>[-/.])(?P<month>\d\d?)(?P=mark)(?P<day>\d\d?)(?:t(?P<time>\d\d:\d\d))?", _read_iso),
    rule(r"(?P<first>\d\d?)(?P<mark>[/.-])(?P<second>\d\d?)(?P=mark)(?P<year>\d{2,4})", _read_numeric),
    rule(r"(?P<first>\d\d?)(?P<mark>/)(?P<second>\d\d?)", _read_numeric),
    rule(r"(?P<first>\d\d?)(?P<mark>\.)(?P<second>\d\d?)\.", _read_numeric),
    rule(
        "(?:(?:the )?(?:start|beginning|first day|first) of )?next (?P<unit>week|month|year)",
        lambda clock, match: _create_day(find_period(clock.today, match["unit"], 1)[0]),
    ),
    rule("(?P<which>this|this coming|the|next) weekend", _read_weekend),
    rule("(?:the )?first(?: day)? of the month", lambda clock, _: _create_day(find_day_of_month(clock.today, 1))),
    rule(f"{_END}(?P<next>next )?(?P<unit>week|month|year)|(?P<short>{'|'.join(_ENDS)})", _read_end),
    rule(rf"{_END}(?P<month>{MONTH})", _read_end_of_month),
    rule(
        rf"(?:the )?first day of (?P<month>{MONTH})",
        lambda clock, match: _create_day(find_day_of_year(clock.today, parse_month(match["month"]), 1)),
    ),
    rule(rf"(?P<holiday>{'|'.join(sorted(_HOLIDAYS, key=len, reverse=True))})", _read_holiday),
)
_FULL = "|".join(WEEKDAYS)
_NAMED = f"{WEEKDAY}|today|tomorrow"
_PARTS = "morning|afternoon|evening|night"
_VAGUE = "early|mid|late|middle of|sometime|some time|beginning of|start of"
_MOVABLE_HOLIDAYS = (
    r"(?:easter(?: sunday| monday)?|good friday|thanksgiving|(?:mother|father)'?s'? day|labou?r day|memorial day"
    r"|passover|ramadan|eid|diwali|hanukkah|new year(?:'s)?(?! eve| day))"
)
_WORKDAYS = "(?:(?:business|working|work) day|workdays?|weekdays?)"
_LOOSE = Unread(is_quiet=True, is_loose=True)
NOT_DAYS = (
    *list_unread(
        rf"(?:{_FULL})s",
        rf"(?:{_NAMED}|tonight) (?:\d\d?|[12]\d[0-5]\d)(?=$| [,.;)!?])",
        rf"\d\d? (?:{_NAMED}) (?:{_PARTS})|(?:{_NAMED}|this) (?:{_PARTS}) \d\d?(?=$| [,.;)!?])",
        r"(?:the )?(?:day|week|month|night|evening|morning|weekend) (?:before|after) \w+(?: \w+day)?",
        "overmorrow",
        "this (?:week|month|year|quarter)|next quarter|(?:week|month) after next",
        rf"(?:{_VAGUE})(?: in)? (?:{MONTH}|(?:the |this |next )?(?:week|month|year))",
        rf"(?:in|by|during|around|before|until|starting|from|beginning|since) (?:{MONTH})"
        r"(?! \d\d?(?: |$|st|nd|rd|th))(?: 20\d\d)?",
        rf"in (?:a few|few|several|some|\d+ (?:-|or|to) \d+) (?:{UNIT}|hour|minute)",
        rf"(?:with)?in (?:the next )?\d+ {_WORKDAYS}|\d+ {_WORKDAYS} from \w+",
        r"or (?:on )?(?:the )?(?:(?:day|week|month|weekend) after|(?:next|following) (?:day|week))(?! \w)",
        rf"in \d+ (?:{_FULL})s|\d+ (?:{_FULL})s (?:from now|ago)",
        rf"(?:on|by|before|until|over|after) {_MOVABLE_HOLIDAYS}",
        rf"(?:in )?(?:\d+|an?) (?:{UNIT}|hour|minute) (?:before|after|prior)",
        rf"(?:a )?fortnight (?:on )?(?:{_NAMED})",
        rf"\d\d? (?:or|and) \d\d?(?: of)? (?:{MONTH})",
    ),
    *list_unread(
        rf"(?:{WEEKDAY}) (?:-|to|through|until|or|and) (?:{WEEKDAY})",
        rf"(?:the )?(?:{WEEKDAY}) after next",
        meaning=Unread(is_plain=True),
    ),
    *list_unread(
        rf"(?:{_FULL}|today|tomorrow)'s",
        rf"(?:last|past|previous) (?:{WEEKDAY}|week|month|year|night|weekend)|yesterday",
        rf"(?:in )?\d+ (?:{UNIT}|hour|minute) ago",
        meaning=Unread(is_silent=True),
    ),
    *list_unread(
        rf"(?:on|by|before|until) the (?!first of ){_ORDINAL}(?: of the month)?(?=$| (?:at|[,.;)!?])(?: |$))",
        rf"(?:the )?\d\d? ?{TH}",
        meaning=Unread(is_quiet=True),
    ),
    *list_unread(rf"(?:{MONTH})(?<!may)(?<!march)(?: 20\d\d)?", meaning=_LOOSE),
)
