"""The table of phrases for repeats, each with its rule and the first day that it allows."""

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
    list_unread,
    parse_count,
    parse_month,
    parse_weekday,
    rule,
)
from english.calendar import add_days, find_day_of_month, find_day_of_year, find_nth_weekday, find_period
from english.words import VERBS, WEEKDAYS, word_set

_EVERY = "(?:every|each|every single)"
_UNITS = {
    "day": ("DAILY", 1),
    "week": ("WEEKLY", 1),
    "fortnight": ("WEEKLY", 2),
    "month": ("MONTHLY", 1),
    "quarter": ("MONTHLY", 3),
    "year": ("YEARLY", 1),
}
_ADVERBS = {f"{unit}ly": unit for unit in _UNITS} | {"daily": "day", "everyday": "day", "annually": "year"}
_NTH = {"first": 1, "1st": 1, "2nd": 2, "second": 2, "third": 3, "3rd": 3, "fourth": 4, "4th": 4, "last": -1}
_ORDINAL = "first|second|third|fourth|last|1 st|2 nd|3 rd|4 th|1st|2nd|3rd|4th"
_DAYS = rf"(?:{WEEKDAY})s?"
_AND = "(?: ?(?:, and|, &|,|and|&|/|\\+) ?| )"
_LIST = rf"{_DAYS}(?:{_AND}(?:{_EVERY} )?{_DAYS})*"
_SEVERAL = rf"{_DAYS}(?:{_AND}{_DAYS})+"
_NUMBER = rf"\d\d? ?{TH}"
_NUMBERS = rf"{_NUMBER}(?:{_AND}(?:the )?{_NUMBER})*"
# Without "th" it is a day only where the text, a separator, or another word about time follows.
_PLAIN = rf"\d\d?(?: ?{TH})?"
_PLAINS = rf"(?:the )?(?:day )?{_PLAIN}(?:(?: ?(?:, and|, &|,|and|&) ?)(?:the )?{_PLAIN})*"
_FOLLOWING = "|".join(VERBS | word_set("and at by for from in p1 p2 p3 p4 please pls plz starting until with"))
_AFTER_PLAIN = rf"(?=$| (?:[,;.:!?()#@-]|\d|(?:{_FOLLOWING})(?: |$)))"
_TO = "(?:-|to|through|until)"
_PLURALS = "|".join(f"{day}s" for day in WEEKDAYS)
_OF_MONTH = "(?: of (?:the|each|every) month)"
_MONTHLY = (
    rf"(?:(?:once (?:a|per) |{_EVERY} (?:(?P<count>other|second|2nd|{COUNT}) )?)(?P<unit>month|quarter)"
    "|(?P<adverb>monthly|quarterly))"
)
_DATE = (
    rf"(?:(?:the )?(?P<day>\d\d?)(?: ?{TH})?(?: of)? (?P<month>{MONTH})"
    rf"|(?P<other_month>{MONTH}) (?:the )?(?P<other_day>\d\d?)(?: ?{TH})?)"
)
_DID = (
    "(?:(?:i|we|i've|we've) (?:last |have )*(?:do|did|done|finish|finished|complete|completed)(?: it| that| this)?"
    "(?: last)?|(?:it is|it's) (?:done|finished|completed)|(?:the )?last time|completion"
    "|(?:doing|finishing|completing) it)"
)


def _render_rule(freq: str, interval: int = 1, by: str = "") -> str:
    return ";".join([f"FREQ={freq}", *([f"INTERVAL={interval}"] if interval > 1 else []), *([by] if by else [])])


def _read_interval(clock: Clock, match: re.Match[str]) -> Meaning:
    interval = _parse_interval(match["count"] or "1")
    freq, times = _UNITS[match["unit"] or _ADVERBS[match["adverb"]]]
    done = ";FROM=DONE" if match["after"] else ""
    return Repeat(_render_rule(freq, interval * times) + done, lambda start: start) if interval else Unread()


def _parse_interval(count: str) -> int:
    return 2 if count in ("second", "2nd") else parse_count(count)


def _create_weekly(weekdays: set[int], interval: int = 1) -> Meaning:
    by = ",".join(WEEKDAYS[weekday][:2].upper() for weekday in sorted(weekdays))

    def first(start: date) -> date:
        return next(day for day in (add_days(start, later) for later in range(7)) if day.weekday() in weekdays)

    return Repeat(_render_rule("WEEKLY", interval, f"BYDAY={by}"), first) if weekdays else Unread()


def _read_weekdays(clock: Clock, match: re.Match[str]) -> Meaning:
    groups = match.groupdict(default="")
    weekdays = {parse_weekday(word) for word in re.findall(WEEKDAY, groups["days"])} or {0, 1, 2, 3, 4}
    excluded = {parse_weekday(word) for word in re.findall(WEEKDAY, groups.get("except", ""))}
    is_fortnightly = groups.get("count", "").startswith("fortnight")
    return _create_weekly(weekdays - excluded, 2 if is_fortnightly else parse_count(groups.get("count") or "1"))


def _read_weekday_range(clock: Clock, match: re.Match[str]) -> Meaning:
    """Reads "standup mon-fri 9am"; "holiday mon-fri" is no repeat, so it needs a time or "every"."""
    first, last = parse_weekday(match["first"]), parse_weekday(match["last"])
    repeat = _create_weekly({(first + later) % 7 for later in range((last - first) % 7 + 1)})
    is_clear = match["every"] or match[0].split()[0].endswith("days")
    return replace(repeat, needs_time=not is_clear) if isinstance(repeat, Repeat) else repeat


def _read_month_days(clock: Clock, match: re.Match[str]) -> Meaning:
    """The rule names only several days, because a single one follows from the first date."""
    days = sorted({int(day) for day in re.findall(r"\d+", match["numbers"])})
    if not all(1 <= day <= 31 for day in days):
        return Unread()

    def first(start: date) -> date | None:
        return min(filter(None, (find_day_of_month(start, day) for day in days)), default=None)

    groups = match.groupdict(default="")
    unit = groups.get("unit") or _ADVERBS.get(groups.get("adverb", ""), "month")
    interval = _parse_interval(groups.get("count") or "1") * _UNITS[unit][1]
    by = f"BYMONTHDAY={','.join(map(str, days))}" if len(days) > 1 else ""
    return Repeat(_render_rule("MONTHLY", interval, by), first) if interval else Unread()


def _read_year_day(clock: Clock, match: re.Match[str]) -> Meaning:
    month, day = parse_month(match["month"] or match["other_month"]), int(match["day"] or match["other_day"])
    if find_day_of_year(clock.today, month, day) is None:
        return Unread()
    return Repeat(_render_rule("YEARLY"), lambda start: find_day_of_year(start, month, day))


def _read_nth_weekday(clock: Clock, match: re.Match[str]) -> Meaning:
    """ "Every second Tuesday" is ambiguous without "of the month"."""
    nth, weekday = _NTH[match["nth"].replace(" ", "")], parse_weekday(match["weekday"])
    if nth == 2 and not match["of"] and match["every"]:
        return Unread()

    def first(start: date) -> date:
        days = (find_nth_weekday(find_period(start, "month", later), nth, weekday) for later in (0, 1))
        return next(day for day in days if day >= start)

    return Repeat(_render_rule("MONTHLY", by=f"BYDAY={nth}{WEEKDAYS[weekday][:2].upper()}"), first)


def _read_bare_list(clock: Clock, match: re.Match[str]) -> Meaning:
    """Reads "mon wed fri" as a repeat; "Monday and Tuesday" is ambiguous."""
    words = re.findall(rf"\b(?:{WEEKDAY})s?\b", match["days"])
    is_clear = len(words) > 2 or not re.search(r"\b(?:and|,|&)", match["days"])
    return _read_weekdays(clock, match) if is_clear and len({word[:3] for word in words}) == len(words) else Unread()


REPEATS: tuple[Rule, ...] = (
    rule(
        rf"(?:{_EVERY}|(?P<after>every!)) (?:(?P<count>other|second|2nd|{COUNT}) )?(?P<unit>{UNIT}|quarter)",
        _read_interval,
    ),
    rule(rf"(?:{_EVERY} )?(?P<count>{COUNT}) (?P<unit>day|week|month|year) (?P<after>after) {_DID}", _read_interval),
    rule(
        "(?:(?:once|one time|1 time) (?:a|per|every) (?P<unit>day|week|month|year)"
        rf"|(?P<adverb>{'|'.join(_ADVERBS)}))(?P<count>)(?P<after>)",
        _read_interval,
    ),
    rule(
        rf"{_EVERY} (?P<part>morning|afternoon|evening|night)",
        lambda clock, match: Repeat(_render_rule("DAILY"), lambda start: start, match["part"]),
    ),
    rule(
        rf"{_EVERY} (?:(?P<count>other) )?(?P<days>{_LIST})(?: except(?: on)? (?P<except>{WEEKDAY})s?)?", _read_weekdays
    ),
    rule(
        rf"(?:(?:weekly )?on )?(?P<days>(?:{_PLURALS})(?:{_AND}{_DAYS})*)",
        _read_weekdays,
    ),
    rule(rf"(?:weekly|{_EVERY} week) on (?P<days>{_LIST})", _read_weekdays),
    rule(rf"{_EVERY} (?P<count>other|{COUNT}) week (?:on )?(?P<days>{_LIST})", _read_weekdays),
    rule(rf"(?:{_EVERY} )?(?P<count>fortnight|fortnightly)(?: on)? (?P<days>{_LIST})", _read_weekdays),
    rule(
        rf"(?P<days>{_EVERY} (?:weekday|working day|work day|workday|business day)s?"
        rf"|(?:on )?(?:weekdays|workdays|working days))(?: except(?: on)? (?P<except>{WEEKDAY})s?)?",
        _read_weekdays,
    ),
    rule(rf"(?:{_EVERY} |on )weekends?|weekends", lambda clock, match: _create_weekly({5, 6})),
    rule(rf"{_MONTHLY} on (?:the )?(?P<numbers>{_NUMBERS})", _read_month_days),
    rule(rf"{_MONTHLY} on (?P<numbers>{_PLAINS}){_AFTER_PLAIN}", _read_month_days),
    rule(
        rf"(?:on )?(?:the )?(?P<numbers>{_NUMBERS})(?: day)? (?:of (?:each|every) month|{_EVERY} month|monthly)",
        _read_month_days,
    ),
    rule(rf"on (?P<numbers>{_PLAINS}) (?:of (?:each|every) month|{_EVERY} month|monthly)", _read_month_days),
    rule(rf"(?:on )?(?:the )?(?P<numbers>{_NUMBER}(?:{_AND}(?:the )?{_NUMBER})+) of the month", _read_month_days),
    rule(rf"{_EVERY} (?P<numbers>{_NUMBERS}){_OF_MONTH}?", _read_month_days),
    rule(
        rf"(?:on )?(?:the )?first(?: day)? of {_EVERY} month|{_EVERY} month on the first|{_EVERY} first of the month",
        lambda clock, match: Repeat(_render_rule("MONTHLY"), lambda start: find_day_of_month(start, 1)),
    ),
    rule(rf"(?:(?:{_EVERY} year|yearly|annually)(?: on)?|{_EVERY}) {_DATE}", _read_year_day),
    rule(rf"(?:on )?{_DATE} (?:{_EVERY} year|yearly|annually)", _read_year_day),
    rule(rf"(?P<every>{_EVERY}) (?P<nth>{_ORDINAL}) (?P<weekday>{WEEKDAY})(?P<of>{_OF_MONTH})?", _read_nth_weekday),
    rule(
        rf"(?P<every>)(?:on )?(?:the )?(?P<nth>{_ORDINAL}) (?P<weekday>{WEEKDAY}) "
        rf"(?P<of>of (?:each|every) month|{_EVERY} month)",
        _read_nth_weekday,
    ),
    rule(
        rf"(?P<every>)(?:{_EVERY} month|monthly) on (?P<of>the )(?P<nth>{_ORDINAL}) (?P<weekday>{WEEKDAY})",
        _read_nth_weekday,
    ),
    rule(
        rf"(?:at |on )?(?:the )?(?:end|last day) of (?:every|each) month|{_EVERY} (?:month end|end of month)"
        rf"|{_EVERY} month on the last day|{_EVERY} last day(?: of the month)?",
        lambda clock, match: Repeat("FREQ=MONTHLY;BYMONTHDAY=-1", lambda start: find_period(start, "month")[1]),
    ),
    rule(r"(?P<every>)(?P<first>mon|monday) (?P<to>-|to|through|until) (?P<last>fri|friday)", _read_weekday_range),
    rule(
        rf"(?P<every>{_EVERY}|daily)(?: day| week)?(?: from| on)? (?P<first>{WEEKDAY})s? {_TO} (?P<last>{WEEKDAY})s?",
        _read_weekday_range,
    ),
    rule(rf"(?P<every>)(?:on )?(?P<first>{_PLURALS}) {_TO} (?P<last>{_PLURALS})", _read_weekday_range),
    rule(rf"(?P<days>{_SEVERAL})", _read_bare_list),
)
_COUNT = r"(?:\d{1,3}|an?|other)"
_ANY_UNIT = f"(?:{UNIT}|hour|minute)"
NOT_REPEATS = list_unread(
    r"(?:twice|once|\d+ ?x|\d+ time|\d+ times|several times|three times) (?:a|per|every|each|in a) \w+",
    rf"{_EVERY}!? (?:few|couple|so|now|hour|minute|(?:\w+ ){{0,2}}(?:hour|minute)s?)(?: often| and then| of \w+)?",
    rf"{_EVERY}!? (?:\w+ )?(?:{WEEKDAY}|day|week|month|year|{MONTH})",
    rf"{_EVERY} (?:other|second|2nd) (?:weekend|weekday)s?",
    r"(?:first|last) (?:working|work|business) day(?: of (?:the|each|every) month)?|nightly",
    r"hourly|biweekly|bi - weekly|bimonthly|(?:semi|bi)(?: - )?annually|biennially|twice daily|weekly or \w+",
    r"except(?: on)? (?:\w+)|all day every day|on and off",
    rf"{_EVERY} {_NUMBER} (?:{WEEKDAY})",
    rf"(?:the )?(?:{_ORDINAL}) (?:{WEEKDAY})(?: of (?:the|next|this) month)?(?: (?:in|of) \w+)?",
) + list_unread(
    rf"{_EVERY}!? (?:\w+ )?(?:{WEEKDAY}|{UNIT}|weekday|{MONTH})s? (?:except|but|if|unless|when)(?: \w+){{0,5}}",
    rf"{_EVERY}!? {_COUNT} (?:-|to|or|and) {_COUNT} {_ANY_UNIT}",
    rf"{_EVERY}!? {_COUNT} {_ANY_UNIT}(?: ,)?(?: and| &)? {_COUNT} {_ANY_UNIT}",
    rf"(?:{'|'.join(_ADVERBS)})(?: at \d[\d:]*(?: ?[ap]m)?)? (?:except|but not|unless)(?: \w+){{0,5}}",
    meaning=Unread(is_plain=True),
)
ENDS: tuple[Rule, ...] = (
    rule(r"(?:for )?(?P<count>[1-9]\d{0,2}) times", lambda clock, match: End(count=int(match["count"]))),
    rule(
        rf"for (?:the next )?(?P<count>{COUNT}) (?P<unit>day|week|month|year)",
        lambda clock, match: End(span=(parse_count(match["count"]), match["unit"])),
    ),
)
