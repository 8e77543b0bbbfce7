"""Repeats: a row for each way to say one, its rule, and the first day that it allows."""

import re
from dataclasses import replace
from datetime import date

from english.atoms import (
    COUNT,
    MONTH,
    TH,
    UNIT,
    WEEKDAY,
    Clock,
    End,
    Meaning,
    Repeat,
    Rule,
    Unread,
    count_of,
    month_of,
    rule,
    weekday_of,
)
from english.calendar import end_of_month, first_of_month, next_day_of_month, next_day_of_year, nth_weekday, plus_days
from english.words import WEEKDAYS

_EVERY = "(?:every|each|every single)"
_FREQ = {"day": "DAILY", "week": "WEEKLY", "month": "MONTHLY", "year": "YEARLY"}
_ADVERBS = {
    "daily": ("DAILY", 1),
    "everyday": ("DAILY", 1),
    "weekly": ("WEEKLY", 1),
    "fortnightly": ("WEEKLY", 2),
    "monthly": ("MONTHLY", 1),
    "quarterly": ("MONTHLY", 3),
    "yearly": ("YEARLY", 1),
    "annually": ("YEARLY", 1),
}
_NTH = {"first": 1, "1st": 1, "2nd": 2, "second": 2, "third": 3, "3rd": 3, "fourth": 4, "4th": 4, "last": -1}
_ORDINAL = "first|second|third|fourth|last|1 st|2 nd|3 rd|4 th|1st|2nd|3rd|4th"
_DAYS = rf"(?:{WEEKDAY})s?"
_AND = "(?: ?(?:, and|, &|,|and|&|/|\\+) ?| )"
_LIST = rf"{_DAYS}(?:{_AND}{_DAYS})*"
_SEVERAL = rf"{_DAYS}(?:{_AND}{_DAYS})+"
_NUMBER = rf"\d\d? ?{TH}"
_NUMBERS = rf"{_NUMBER}(?:{_AND}(?:the )?{_NUMBER})*"
_OF_MONTH = "(?: of (?:the|each|every) month)"
_DATE = (
    rf"(?:(?:the )?(?P<day>\d\d?)(?: ?{TH})?(?: of)? (?P<month>{MONTH})"
    rf"|(?P<other_month>{MONTH}) (?:the )?(?P<other_day>\d\d?)(?: ?{TH})?)"
)
_DID = (
    "(?:(?:i|we|i've|we've) (?:last |have )*(?:do|did|done|finish|finished|complete|completed)(?: it| that| this)?"
    "(?: last)?|(?:it is|it's) (?:done|finished|completed)|(?:the )?last time|completion"
    "|(?:doing|finishing|completing) it)"
)


def _rule(freq: str, interval: int = 1, by: str = "") -> str:
    return ";".join([f"FREQ={freq}", *([f"INTERVAL={interval}"] if interval > 1 else []), *([by] if by else [])])


def _each(clock: Clock, match: re.Match[str]) -> Meaning:
    count = match["count"]
    interval = 2 if count in ("other", "second", "2nd") else count_of(count or "1")
    unit, done = match["unit"], ";FROM=DONE" if match["after"] else ""
    freq, times = {"fortnight": ("WEEKLY", 2), "quarter": ("MONTHLY", 3)}.get(unit) or (_FREQ[unit], 1)
    return Repeat(_rule(freq, interval * times) + done, lambda start: start) if interval else Unread()


def _adverb(clock: Clock, match: re.Match[str]) -> Meaning:
    return Repeat(_rule(*_ADVERBS[match["adverb"]]), lambda start: start)


def _on_weekdays(weekdays: set[int], interval: int = 1) -> Meaning:
    by = ",".join(WEEKDAYS[weekday][:2].upper() for weekday in sorted(weekdays))

    def first(start: date) -> date:
        return next(day for day in (plus_days(start, later) for later in range(7)) if day.weekday() in weekdays)

    return Repeat(_rule("WEEKLY", interval, f"BYDAY={by}"), first) if weekdays else Unread()


def _listed(clock: Clock, match: re.Match[str]) -> Meaning:
    named = {weekday_of(word) for word in re.findall(WEEKDAY, match["days"])}
    count = match.groupdict().get("count")
    interval = 2 if count in ("other", "fortnight", "fortnightly") else count_of(count or "1")
    left_out = match.groupdict().get("except")
    return _on_weekdays(named - ({weekday_of(left_out)} if left_out else set()), interval)


def _from_to(clock: Clock, match: re.Match[str]) -> Meaning:
    """Of "standup mon-fri 9am" the days; "holiday mon-fri" is no repeat, so it needs a time or "every"."""
    first, last = weekday_of(match["first"]), weekday_of(match["last"])
    found = _on_weekdays(set(range(first, last + 1))) if first < last else Unread()
    return replace(found, needs_time="every" not in match[0]) if isinstance(found, Repeat) else found


def _working_days(clock: Clock, match: re.Match[str]) -> Meaning:
    left_out = match["except"]
    return _on_weekdays({0, 1, 2, 3, 4} - ({weekday_of(left_out)} if left_out else set()))


def _month_days(clock: Clock, match: re.Match[str]) -> Meaning:
    """One day of the month is told by the first date alone, several by the rule."""
    days = sorted({int(day) for day in re.findall(r"\d+", match["numbers"])})
    if not all(1 <= day <= 31 for day in days):
        return Unread()

    def first(start: date) -> date | None:
        return min(filter(None, (next_day_of_month(start, day) for day in days)), default=None)

    count = match.groupdict().get("count")
    by = f"BYMONTHDAY={','.join(map(str, days))}" if len(days) > 1 else ""
    return Repeat(_rule("MONTHLY", count_of(count or "1"), by), first)


def _year_day(clock: Clock, match: re.Match[str]) -> Meaning:
    month, day = month_of(match["month"] or match["other_month"]), int(match["day"] or match["other_day"])
    if next_day_of_year(clock.today, month, day) is None:
        return Unread()
    return Repeat(_rule("YEARLY"), lambda start: next_day_of_year(start, month, day))


def _nth_weekday(clock: Clock, match: re.Match[str]) -> Meaning:
    """ "Every second Tuesday" may be every other one, so it needs "of the month"."""
    nth, weekday = _NTH[match["nth"].replace(" ", "")], weekday_of(match["weekday"])
    if nth == 2 and not match["of"] and match["every"]:
        return Unread()

    def first(start: date) -> date | None:
        days = (nth_weekday(first_of_month(start, later), nth, weekday) for later in range(3))
        return next((day for day in days if day and day >= start), None)

    return Repeat(_rule("MONTHLY", by=f"BYDAY={nth}{WEEKDAYS[weekday][:2].upper()}"), first)


def _last_day(clock: Clock, match: re.Match[str]) -> Meaning:
    return Repeat(_rule("MONTHLY", by="BYMONTHDAY=-1"), end_of_month)


def _part(clock: Clock, match: re.Match[str]) -> Meaning:
    return Repeat(_rule("DAILY"), lambda start: start, match["part"])


def _bare_list(clock: Clock, match: re.Match[str]) -> Meaning:
    """Of "mon wed fri" a repeat; of "Monday and Tuesday" it is not clear."""
    words = re.findall(rf"\b(?:{WEEKDAY})s?\b", match["days"])
    is_clear = len(words) > 2 or not re.search(r"\b(?:and|,|&)", match["days"])
    return _listed(clock, match) if is_clear and len({word[:3] for word in words}) == len(words) else Unread()


REPEATS: tuple[Rule, ...] = (
    rule(
        rf"(?:{_EVERY}|(?P<after>every!)) (?:(?P<count>other|second|2nd|{COUNT}) )?(?P<unit>{UNIT}|quarter)",
        _each,
    ),
    rule(rf"(?:{_EVERY} )?(?P<count>{COUNT}) (?P<unit>day|week|month|year) (?P<after>after) {_DID}", _each),
    rule(f"(?P<adverb>{'|'.join(_ADVERBS)})", _adverb),
    rule("(?:once|one time|1 time) (?:a|per|every) (?P<unit>day|week|month|year)(?P<count>)(?P<after>)", _each),
    rule(rf"{_EVERY} (?P<part>morning|afternoon|evening|night)", _part),
    rule(rf"{_EVERY} (?P<days>{_LIST})(?: except(?: on)? (?P<except>{WEEKDAY})s?)?", _listed),
    rule(rf"(?:(?:weekly )?on )?(?P<days>(?:{'|'.join(f'{day}s' for day in WEEKDAYS)})(?:{_AND}{_DAYS})*)", _listed),
    rule(rf"(?:weekly|{_EVERY} week) on (?P<days>{_LIST})", _listed),
    rule(rf"{_EVERY} (?P<count>other) (?P<days>{_LIST})", _listed),
    rule(rf"{_EVERY} (?P<count>other|{COUNT}) week (?:on )?(?P<days>{_LIST})", _listed),
    rule(rf"(?:{_EVERY} )?(?P<count>fortnight|fortnightly)(?: on)? (?P<days>{_LIST})", _listed),
    rule(
        rf"{_EVERY} (?:weekday|working day|work day|workday|business day)s?(?: except(?: on)? (?P<except>{WEEKDAY})s?)?"
        r"|(?:on )?(?:weekdays|workdays|working days)(?: except(?: on)? (?P<other>\w+))?",
        lambda clock, match: Unread() if match["other"] else _working_days(clock, match),
    ),
    rule(
        rf"(?:{_EVERY} |on )weekends?|weekends|(?:{_EVERY} )(?:sat|saturday) and (?:sun|sunday)",
        lambda clock, match: _on_weekdays({5, 6}),
    ),
    rule(
        rf"(?:{_EVERY} month|monthly|{_EVERY} (?P<count>{COUNT}) month) on (?:the )?(?P<numbers>{_NUMBERS})",
        _month_days,
    ),
    rule(
        rf"(?:on )?(?:the )?(?P<numbers>{_NUMBERS})(?: day)? (?:of (?:each|every) month|{_EVERY} month|monthly)",
        _month_days,
    ),
    rule(rf"(?:on )?(?:the )?(?P<numbers>{_NUMBER}(?:{_AND}(?:the )?{_NUMBER})+) of the month", _month_days),
    rule(rf"{_EVERY} (?P<numbers>{_NUMBERS}){_OF_MONTH}?", _month_days),
    rule(
        rf"(?:on )?(?:the )?first(?: day)? of {_EVERY} month|{_EVERY} month on the first|{_EVERY} first of the month",
        lambda clock, match: Repeat(_rule("MONTHLY"), lambda start: next_day_of_month(start, 1)),
    ),
    rule(rf"(?:{_EVERY} year|yearly|annually)(?: on)? {_DATE}", _year_day),
    rule(rf"{_EVERY} {_DATE}", _year_day),
    rule(rf"{_DATE} (?:{_EVERY} year|yearly|annually)", _year_day),
    rule(rf"(?P<every>{_EVERY}) (?P<nth>{_ORDINAL}) (?P<weekday>{WEEKDAY})(?P<of>{_OF_MONTH})?", _nth_weekday),
    rule(
        rf"(?P<every>)(?:on )?(?:the )?(?P<nth>{_ORDINAL}) (?P<weekday>{WEEKDAY}) "
        rf"(?P<of>of (?:each|every) month|{_EVERY} month)",
        _nth_weekday,
    ),
    rule(
        rf"(?P<every>)(?:{_EVERY} month|monthly) on (?P<of>the )(?P<nth>{_ORDINAL}) (?P<weekday>{WEEKDAY})",
        _nth_weekday,
    ),
    rule(
        rf"(?:at |on )?(?:the )?(?:end|last day) of (?:every|each) month|{_EVERY} (?:month end|end of month)"
        rf"|{_EVERY} month on the last day|{_EVERY} last day(?: of the month)?",
        _last_day,
    ),
    rule(rf"(?P<first>mon|monday) (?:-|to|through|until) (?P<last>{WEEKDAY})", _from_to),
    rule(rf"{_EVERY} day (?:from )?(?P<first>{WEEKDAY}) (?:-|to|through|until) (?P<last>{WEEKDAY})", _from_to),
    rule(rf"(?P<days>{_SEVERAL})", _bare_list),
)
NOT_REPEATS: tuple[Rule, ...] = tuple(
    rule(pattern, lambda clock, match: Unread())
    for pattern in (
        r"(?:twice|once|\d+ ?x|\d+ time|\d+ times|several times|three times) (?:a|per|every|each|in a) \w+",
        rf"{_EVERY}!? (?:few|couple|so|now|hour|minute|(?:\w+ ){{0,2}}(?:hour|minute)s?)(?: often| and then| of \w+)?",
        rf"{_EVERY}!? (?:\w+ )?(?:{WEEKDAY}|day|week|month|year|{MONTH})(?: except \w+| but \w+| if \w+| unless \w+)?",
        rf"{_EVERY} (?:other|second|2nd) (?:weekend|weekday)s?",
        r"(?:first|last) (?:working|work|business) day(?: of (?:the|each|every) month)?|nightly",
        r"hourly|biweekly|bi - weekly|bimonthly|(?:semi|bi)(?: - )?annually|biennially|twice daily|weekly or \w+",
        r"except(?: on)? (?:\w+)|all day every day|on and off",
        rf"{_EVERY} {_NUMBER} (?:{WEEKDAY})",
        rf"(?:the )?(?:{_ORDINAL}) (?:{WEEKDAY})(?: of (?:the|next|this) month)?(?: (?:in|of) \w+)?",
    )
)
ENDS: tuple[Rule, ...] = (
    rule(r"(?:for )?(?P<count>[1-9]\d{0,2}) times", lambda clock, match: End(count=int(match["count"]))),
    rule(
        rf"for (?:the next )?(?P<count>{COUNT}) (?P<unit>day|week|month|year)",
        lambda clock, match: End(span=(count_of(match["count"]), match["unit"])),
    ),
)
