"""Todoist's DATE: the days and repeats in English that can mean one thing only, in the words of our own tools.

A repeat begins on the first of its days from today on, from tomorrow on if its time of today has passed.
"""

import re
from datetime import date, datetime, time, timedelta

from common.tool_server.refusals import shown
from mcp_server.imports.file_tasks import PartUnread
from mcp_server.tasks import repeats

_LONGEST = 120  # characters; nothing that can be read is as long
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
_WEEKDAY_OF = {word: i for i, name in enumerate(_WEEKDAYS) for word in (name, name[:3])} | {
    "tues": 1,
    "thur": 3,
    "thurs": 3,
}
_MONTH_OF = {word: i for i, name in enumerate(_MONTHS, start=1) for word in (name, name[:3])} | {"sept": 9}
_FREQ = {"day": "DAILY", "week": "WEEKLY", "month": "MONTHLY", "year": "YEARLY"}
_NTH = {"first": "1", "third": "3", "fourth": "4", "last": "-1"}  # "every second Tuesday" could be every other one
_SAME = {
    "daily": "every day",
    "weekly": "every week",
    "monthly": "every month",
    "quarterly": "every 3 months",
    "yearly": "every year",
    "annually": "every year",
    "every! quarter": "every! 3 months",
    "every quarter": "every 3 months",
    "everyday": "every day",
    "every morning": "every day at 9:00",
    "every afternoon": "every day at 12:00",
    "every evening": "every day at 19:00",
    "every night": "every day at 22:00",
}
_ISO = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_CLAUSE = re.compile(r" (starting|from|until|ending)(?: on)? ")
_CLOCK = re.compile(
    r" (?:at )?(?:(?P<hour>\d\d?):(?P<minute>\d\d) ?(?P<half>[ap]m)?|(?P<hour_of_half>\d\d?) ?(?P<its_half>[ap]m))$"
    r"| at (?P<hour_alone>\d\d?)$",
    re.ASCII,
)
_MONTH_AND_DAY = re.compile(
    r"(?:(?P<month>[a-z]+) (?P<day>\d\d?)(?:st|nd|rd|th)?|(?P<day_first>\d\d?)(?:st|nd|rd|th)? (?P<its_month>[a-z]+))"
    r"(?: (?P<year>\d{4}))?",
    re.ASCII,
)
_UNIT = re.compile(r"(?:(?P<many>other|\d{1,3}) )?(?P<unit>day|week|month|year)s?", re.ASCII)
_NTH_WEEKDAY = re.compile(rf"(?P<nth>{'|'.join(_NTH)}|[1-5](?:st|nd|rd|th)) (?P<weekday>[a-z]+)", re.ASCII)
_MONTH_DAYS = re.compile(r"\d\d?(?:st|nd|rd|th)?(?: \d\d?(?:st|nd|rd|th)?)*", re.ASCII)


def read(text: str, now: datetime) -> tuple[str | None, str | None]:
    """`due` and `repeat` of `add_task`, by the clock where the user is; raises `PartUnread`."""
    words = " ".join(re.sub(r",|&|\band\b", " ", text.lower()).split()) if len(text) <= _LONGEST else ""
    if not text.strip():
        return None, None
    words = _SAME.get(words, words)
    if _ISO.match(words):
        return _iso(words, text), None
    main, clauses = _clauses(words, text)
    main, clock = _clock(main, text)
    clauses["starting"], later_clock = _clock(clauses.get("starting", ""), text)
    clock = clock or later_clock
    every = re.fullmatch(r"every(!?) (.+)", main)
    if every is None:
        day = None if clauses["starting"] or "until" in clauses else _day(main, now.date())
        if day is None:
            raise _unknown(text)
        return _due(day, clock), None
    start = _start(clauses["starting"], clock, now, text)
    day, rule = _repeat(every[2], start, text)
    if every[1] and "BY" not in rule:
        rule += ";FROM=DONE"
    if "until" in clauses:
        rule += f";UNTIL={_needed(_day(clauses['until'], now.date()), text).isoformat()}"
    return _due(day, clock), rule


def _iso(words: str, text: str) -> str:
    """As our own tools read it, who know a T, a Z and an offset, but no pm."""
    main, clock = _clock(words, text)
    return f"{main} {clock:%H:%M}" if clock else words


def _unknown(text: str) -> PartUnread:
    return PartUnread(
        f'DATE "{shown(text)}" cannot be read. Write a day (2026-11-27), a day and a time (2026-11-27 15:00), or a '
        "repeat such as every monday at 9:00, every 2 weeks, every 27th, every! 3 months."
    )


def _needed(day: date | None, text: str) -> date:
    if day is None:
        raise _unknown(text)
    return day


def _due(day: date, clock: time | None) -> str:
    return f"{day} {clock:%H:%M}" if clock else f"{day}"


def _clauses(words: str, text: str) -> tuple[str, dict[str, str]]:
    """What stands before "starting" and "until", and what stands after them."""
    main, *rest = _CLAUSE.split(words)
    names = ["starting" if name in ("starting", "from") else "until" for name in rest[::2]]
    if len(set(names)) < len(names):
        raise _unknown(text)
    return main, dict(zip(names, rest[1::2], strict=True))


def _clock(words: str, text: str) -> tuple[str, time | None]:
    """The words without the time at their end, and the time; 1 to 6 alone could be in the morning or not."""
    found = _CLOCK.search(f" {words}")
    if found is None:
        return words, None
    hour = int(found["hour"] or found["hour_of_half"] or found["hour_alone"])
    half = found["half"] or found["its_half"]
    if (half and not 1 <= hour <= 12) or (found["hour_alone"] and hour < 7):
        raise _unknown(text)
    hour = hour % 12 + 12 * (half == "pm") if half else hour
    minute = int(found["minute"] or 0)
    if hour > 23 or minute > 59:
        raise _unknown(text)
    return words[: max(found.start() - 1, 0)], time(hour, minute)


def _day(words: str, today: date) -> date | None:
    """A day; without its year the next one from today on, and a weekday is the next after today."""
    if words in ("today", "tod", "tomorrow", "tom"):
        return today + timedelta(days=words.startswith("tom"))
    if words in _WEEKDAY_OF:
        return today + timedelta(days=(_WEEKDAY_OF[words] - today.weekday() - 1) % 7 + 1)
    if _ISO.fullmatch(words):
        return _calendar_day(*map(int, words.split("-")))
    found = _MONTH_AND_DAY.fullmatch(words)
    month = _MONTH_OF.get(found["month"] or found["its_month"]) if found else None
    if found is None or month is None:
        return None
    number = int(found["day"] or found["day_first"])
    if found["year"]:
        return _calendar_day(int(found["year"]), month, number)
    years = range(today.year, today.year + 9)  # a leap year is among them
    days = (_calendar_day(year, month, number) for year in years)
    return next((day for day in days if day and day >= today), None)


def _calendar_day(year: int, month: int, day: int) -> date | None:
    try:
        return date(year, month, day)
    except ValueError:
        return None


def _start(words: str, clock: time | None, now: datetime, text: str) -> date:
    if words:
        return _needed(_day(words, now.date()), text)
    return now.date() + timedelta(days=clock is not None and clock <= now.time())


def _repeat(words: str, start: date, text: str) -> tuple[date, str]:
    """The first day from `start` on, and the rule, of what stands after "every"."""
    if unit := _UNIT.fullmatch(words):
        many = 2 if unit["many"] == "other" else int(unit["many"] or 1)
        return start, f"FREQ={_FREQ[unit['unit']]};INTERVAL={many}"
    if (yearly := _day(words, start)) and _MONTH_AND_DAY.fullmatch(words):
        return yearly, "FREQ=YEARLY"
    named = words.removeprefix("other ")
    by = _by(named, text)
    if named != words and named.split()[0] not in _WEEKDAY_OF:
        raise _unknown(text)
    first = repeats.following(repeats.parse(by), due=start - timedelta(days=1), today=start - timedelta(days=1))
    return _needed(first, text), by if named == words else f"{by};INTERVAL=2"


def _by(words: str, text: str) -> str:
    """The rule of days in a week or in a month."""
    words = words.removesuffix(" of the month")
    if words in ("weekday", "workday"):
        return "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR"
    if words == "weekend":  # as Todoist means it
        return "FREQ=WEEKLY;BYDAY=SA"
    if words == "last day":
        return "FREQ=MONTHLY;BYMONTHDAY=-1"
    if all(word in _WEEKDAY_OF for word in words.split()):
        return f"FREQ=WEEKLY;BYDAY={','.join(_rfc_weekday(word) for word in words.split())}"
    nth = _NTH_WEEKDAY.fullmatch(words)
    if nth and nth["weekday"] in _WEEKDAY_OF:
        return f"FREQ=MONTHLY;BYDAY={_NTH.get(nth['nth'], nth['nth'][0])}{_rfc_weekday(nth['weekday'])}"
    days = [int(day) for day in re.findall(r"\d+", words)] if _MONTH_DAYS.fullmatch(words) else []
    if not days or not all(1 <= day <= 31 for day in days):
        raise _unknown(text)
    return f"FREQ=MONTHLY;BYMONTHDAY={','.join(map(str, days))}"


def _rfc_weekday(word: str) -> str:
    return _WEEKDAYS[_WEEKDAY_OF[word]][:2].upper()
