"""Rules of repeats: what is rejected, what is stored, and the next date, with dateutil as the measure.

dateutil loops for ever on some rules: it is given only what `recurrence` has read and written out.
"""

import re
from dataclasses import replace
from datetime import date, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest
from dateutil.rrule import rrulestr
from hypothesis import given
from hypothesis import strategies as st

from common import recurrence
from common import repeats as in_words
from common.recurrence import LAST_DAY, RepeatInvalid, Rule, read_rule

FRIDAY = date(2026, 11, 27)
EVERY_DAY_OF_EVERY_WEEK = ",".join(
    f"{nth}{day}" for nth in ("", *range(1, 6), -1) for day in ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
)
WRONG_VALUES = {
    "INTERVAL": ["0", "-1", "1000", "1.5", "", "01", "\u0662"],
    "BYDAY": ["XX", "MO,", "6MO", "0MO", "-2FR", "MO TU", "MONDAY", "12MO", "", "+1MO"],
    "BYMONTHDAY": ["0", "32", "-2", "1,,2", "+1", "\u0661"],
    "BYMONTH": ["0", "13", "1,2"],
    "COUNT": ["0", "-1", "1000", "9" * 40],
    "UNTIL": ["TOMORROW", "20271231T250000Z", "20271231T12", "2027-1-1", "202712"],
    "WKST": ["1", "MON", ""],
    "FROM": ["DUE", ""],
}
REJECTED = [
    *("", "none", "every Monday", "INTERVAL=2", "RRULE:COUNT=2", "FREQ", "FREQ=HOURLY", "FREQ=DAILY;;"),
    *("FREQ=DAILY FREQ=DAILY", "FREQ=DAILY;FREQ=WEEKLY", "FREQ=DAILY;\0\x1b=1", "FREQ=DAILY;" * 30),
    *[f"FREQ=MONTHLY;{part}" for part in ("BYSETPOS=5", "BYMINUTE=61", "DTSTART=20261127")],
    *[f"FREQ=MONTHLY;{name}={value}" for name, values in WRONG_VALUES.items() for value in values],
    *("FREQ=DAILY;UNTIL=20270229", "FREQ=DAILY;UNTIL=2027-00-01", "FREQ=DAILY;UNTIL=20261126"),
    *("FREQ=DAILY;COUNT=3;UNTIL=20271231", "FREQ=MONTHLY;BYDAY=FR;BYMONTHDAY=13", "FREQ=WEEKLY;BYDAY=MO;FROM=DONE"),
    *("FREQ=YEARLY;BYMONTH=2;FROM=DONE", "FREQ=WEEKLY;BYDAY=1MO", "FREQ=DAILY;BYDAY=-1MO"),
    *("FREQ=DAILY;INTERVAL=2;BYDAY=MO", "FREQ=DAILY;BYMONTHDAY=1", "FREQ=WEEKLY;BYMONTHDAY=1"),
    *("FREQ=MONTHLY;BYMONTH=1", "FREQ=YEARLY;BYDAY=MO", "FREQ=WEEKLY;INTERVAL=2;WKST=SU"),
    f"FREQ=MONTHLY;INTERVAL=999;COUNT=999;BYDAY={EVERY_DAY_OF_EVERY_WEEK}",  # readable, but too long to be stored
]

STORED = [
    # the text, the day the task is due, the text that is stored
    ("freq=daily", "2026-11-27", "FREQ=DAILY"),
    (" RRULE:FREQ=DAILY ; INTERVAL=1 ", "2026-11-27", "FREQ=DAILY"),
    ("FREQ=DAILY;BYDAY=MO,TU,WE,TH,FR", "2026-11-27", "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR"),
    ("FREQ=WEEKLY", "2026-11-27", "FREQ=WEEKLY;BYDAY=FR"),
    ("INTERVAL=2;BYDAY=th,mo,th;FREQ=WEEKLY", "2026-11-27", "FREQ=WEEKLY;INTERVAL=2;BYDAY=MO,TH"),
    ("FREQ=MONTHLY", "2027-01-31", "FREQ=MONTHLY;BYMONTHDAY=31"),
    ("FREQ=MONTHLY;BYMONTHDAY=-1", "2027-01-31", "FREQ=MONTHLY;BYMONTHDAY=-1"),
    ("FREQ=MONTHLY;BYMONTHDAY=15,01", "2026-11-27", "FREQ=MONTHLY;BYMONTHDAY=1,15"),
    ("FREQ=MONTHLY;BYDAY=-1FR", "2026-11-27", "FREQ=MONTHLY;BYDAY=-1FR"),
    ("FREQ=MONTHLY;BYDAY=3MO,1MO", "2026-11-27", "FREQ=MONTHLY;BYDAY=1MO,3MO"),
    ("FREQ=YEARLY", "2028-02-29", "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29"),
    ("FREQ=YEARLY;BYMONTHDAY=24", "2026-12-01", "FREQ=YEARLY;BYMONTH=12;BYMONTHDAY=24"),
    ("FREQ=YEARLY;BYMONTH=03", "2026-11-27", "FREQ=YEARLY;BYMONTH=3;BYMONTHDAY=27"),
    ("FREQ=DAILY;COUNT=10", "2026-11-27", "FREQ=DAILY;COUNT=10"),
    ("FREQ=DAILY;UNTIL=2026-11-27", "2026-11-27", "FREQ=DAILY;UNTIL=20261127"),
    ("FREQ=WEEKLY;WKST=SU;BYDAY=FR;", "2026-11-27", "FREQ=WEEKLY;BYDAY=FR"),
    ("FREQ=MONTHLY;INTERVAL=3;FROM=DONE", "2026-11-27", "FREQ=MONTHLY;INTERVAL=3;FROM=DONE"),
    ("FREQ=WEEKLY;FROM=DONE;UNTIL=20271231", "2026-11-27", "FREQ=WEEKLY;UNTIL=20271231;FROM=DONE"),
]

NEXT = [
    # the rule, the day the task is due, the day it is completed, the next date
    ("FREQ=DAILY", "2026-11-27", "2026-11-20", "2026-11-28"),
    ("FREQ=DAILY", "2026-11-27", "2026-11-27", "2026-11-28"),
    ("FREQ=DAILY", "2026-11-27", "2026-11-30", "2026-12-01"),
    ("FREQ=DAILY;INTERVAL=3", "2026-11-27", "2026-11-30", "2026-12-03"),
    ("FREQ=DAILY", "2026-11-27", "2926-11-27", "2926-11-28"),
    ("FREQ=WEEKLY", "2026-11-27", "2026-11-27", "2026-12-04"),
    ("FREQ=WEEKLY;BYDAY=MO,TH", "2026-11-23", "2026-11-23", "2026-11-26"),
    ("FREQ=WEEKLY;BYDAY=MO,TH", "2026-11-23", "2026-11-26", "2026-11-30"),
    ("FREQ=WEEKLY;INTERVAL=2;BYDAY=MO,SU", "2026-11-23", "2026-11-23", "2026-11-29"),
    ("FREQ=WEEKLY;INTERVAL=2;BYDAY=MO,SU", "2026-11-29", "2026-11-29", "2026-12-07"),
    ("FREQ=WEEKLY;INTERVAL=2", "2026-11-23", "2026-12-01", "2026-12-07"),
    # one that was put off by hand goes back to its own weekday and day of the month
    ("FREQ=WEEKLY;BYDAY=MO", "2026-11-25", "2026-11-25", "2026-11-30"),
    ("FREQ=MONTHLY;BYMONTHDAY=1", "2026-12-03", "2026-12-03", "2027-01-01"),
    # a month that is too short has the day on its last
    ("FREQ=MONTHLY", "2027-01-31", "2027-01-31", "2027-02-28"),
    ("FREQ=MONTHLY;BYMONTHDAY=31", "2027-02-28", "2027-02-28", "2027-03-31"),
    ("FREQ=MONTHLY;BYMONTHDAY=31", "2027-03-31", "2027-04-02", "2027-04-30"),
    ("FREQ=MONTHLY;BYMONTHDAY=30,31", "2027-02-28", "2027-02-28", "2027-03-30"),
    ("FREQ=MONTHLY;BYMONTHDAY=-1", "2028-01-31", "2028-01-31", "2028-02-29"),
    ("FREQ=MONTHLY;INTERVAL=12", "2028-02-29", "2028-02-29", "2029-02-28"),
    ("FREQ=MONTHLY;BYDAY=-1FR", "2026-11-27", "2026-11-27", "2026-12-25"),
    ("FREQ=MONTHLY;BYDAY=5MO", "2026-11-30", "2026-11-30", "2027-03-29"),
    ("FREQ=MONTHLY;INTERVAL=12;BYDAY=4TH", "2026-11-26", "2026-11-26", "2027-11-25"),
    ("FREQ=YEARLY", "2028-02-29", "2028-02-29", "2029-02-28"),
    ("FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29", "2029-02-28", "2031-06-01", "2032-02-29"),
    ("FREQ=YEARLY;INTERVAL=2;BYMONTH=3", "2026-11-27", "2026-11-27", "2028-03-27"),
    ("FREQ=YEARLY;BYMONTH=12", "2026-11-27", "2026-11-27", "2026-12-27"),
    # the last dates
    ("FREQ=DAILY;COUNT=2", "2026-11-27", "2026-11-27", "2026-11-28"),
    ("FREQ=DAILY;COUNT=1", "2026-11-27", "2026-11-27", None),
    ("FREQ=DAILY;UNTIL=20261128", "2026-11-27", "2026-11-27", "2026-11-28"),
    ("FREQ=DAILY;UNTIL=20261128", "2026-11-27", "2026-11-28", None),
    ("FREQ=MONTHLY", "2999-11-15", "2999-11-15", "2999-12-15"),
    ("FREQ=DAILY", "2999-12-31", "2999-12-31", None),
    ("FREQ=YEARLY;INTERVAL=999", "2026-11-27", "2026-11-27", None),
    # from the day of completion
    ("FREQ=DAILY;INTERVAL=3;FROM=DONE", "2026-11-27", "2026-11-25", "2026-11-28"),
    ("FREQ=WEEKLY;INTERVAL=2;FROM=DONE", "2026-11-27", "2026-12-01", "2026-12-15"),
    ("FREQ=MONTHLY;INTERVAL=3;FROM=DONE", "2026-11-27", "2026-11-30", "2027-02-28"),
    ("FREQ=YEARLY;FROM=DONE", "2026-11-27", "2028-02-29", "2029-02-28"),
    ("FREQ=DAILY;FROM=DONE;COUNT=1", "2026-11-27", "2026-11-27", None),
    ("FREQ=MONTHLY;FROM=DONE;UNTIL=20261226", "2026-11-27", "2026-11-27", None),
    # the rarest of all: in February every seventh year, 119 times without a fifth Monday; and one that never has any
    ("FREQ=MONTHLY;INTERVAL=84;BYDAY=5MO", "2072-02-29", "2072-02-29", "2912-02-29"),
    ("FREQ=MONTHLY;INTERVAL=24;BYDAY=5MO,5TU,5WE,5TH,5FR,5SA,5SU", "2027-02-01", "2027-02-01", None),
]


@pytest.mark.parametrize("text", REJECTED)
def test_a_rule_that_cannot_be_read(text: str) -> None:
    with pytest.raises(RepeatInvalid) as rejected:
        recurrence.read_rule(text, FRIDAY)
    assert_one_sentence(str(rejected.value))


def assert_one_sentence(sentence: str) -> None:
    assert sentence.isprintable()
    assert "FREQ=" in sentence, "it says what to write"
    assert len(sentence) < 480


@pytest.mark.parametrize(("text", "due", "stored"), STORED)
def test_what_is_left_out_comes_from_the_due_date(text: str, due: str, stored: str) -> None:
    rule = recurrence.read_rule(text, date.fromisoformat(due))
    assert str(rule) == stored
    assert recurrence.parse_rule(stored) == rule


@pytest.mark.parametrize(
    ("until", "due_time", "last"),
    [
        ("20261218T235959", None, "20261218"),
        ("20261218T225959Z", None, "20261218"),
        ("20261218T235959Z", None, "20261219"),
        ("99991231T235959Z", None, "99991231"),
        ("20261218T130000Z", time(14), "20261218"),
        ("20261218T125959Z", time(14), "20261217"),
    ],
)
def test_until_with_a_time_ends_on_the_last_date_in_the_users_zone(
    until: str, due_time: time | None, last: str
) -> None:
    rule = recurrence.read_rule(f"FREQ=DAILY;UNTIL={until}", FRIDAY, due_time, ZoneInfo("Europe/Berlin"))
    assert str(rule) == f"FREQ=DAILY;UNTIL={last}"


@pytest.mark.parametrize(("text", "due", "today", "expected"), NEXT)
def test_the_next_date(text: str, due: str, today: str, expected: str | None) -> None:
    rule = recurrence.read_rule(text, date.fromisoformat(due))
    found = recurrence.find_next_date(rule, due=date.fromisoformat(due), today=date.fromisoformat(today))
    assert found == (date.fromisoformat(expected) if expected else None)


def test_a_count_is_what_is_left_whatever_was_late() -> None:
    rule, due = recurrence.read_rule("FREQ=WEEKLY;COUNT=3", FRIDAY), FRIDAY
    made = []
    while (found := recurrence.find_next_date(rule, due=due, today=due + timedelta(days=20))) is not None:
        rule, due = recurrence.get_next_rule(rule), found
        made.append((str(due), str(rule)))
    assert made == [
        ("2026-12-18", "FREQ=WEEKLY;BYDAY=FR;COUNT=2"),
        ("2027-01-08", "FREQ=WEEKLY;BYDAY=FR;COUNT=1"),
    ]


def test_without_a_count_the_rule_stays_as_it_is() -> None:
    rule = recurrence.read_rule("FREQ=WEEKLY;UNTIL=20271231", FRIDAY)
    assert recurrence.get_next_rule(rule) == rule


def listed(values: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.lists(values, min_size=1, max_size=4).map(",".join)


WEEKDAYS = st.sampled_from(["MO", "TU", "WE", "TH", "FR", "SA", "SU"])
NUMBERED = st.tuples(st.sampled_from(["", "1", "2", "3", "4", "5", "-1"]), WEEKDAYS).map("".join)
MONTH_DAYS = listed((st.integers(1, 31) | st.just(-1)).map(str))
BY = {
    "DAILY": st.just("") | listed(WEEKDAYS).map("BYDAY={}".format),
    "WEEKLY": st.just("") | listed(WEEKDAYS).map("BYDAY={}".format),
    "MONTHLY": st.just("") | listed(NUMBERED).map("BYDAY={}".format) | MONTH_DAYS.map("BYMONTHDAY={}".format),
    "YEARLY": st.just("")
    | MONTH_DAYS.map("BYMONTHDAY={}".format)
    | st.integers(1, 12).map("BYMONTH={}".format)
    | st.tuples(st.integers(1, 12), MONTH_DAYS).map(lambda both: f"BYMONTH={both[0]};BYMONTHDAY={both[1]}"),
}


@st.composite
def rules(draw: st.DrawFn, most: int = 999) -> str:
    """A text of the subset without an end."""
    freq = draw(st.sampled_from(sorted(BY)))
    by = draw(BY[freq])
    interval = 1 if freq == "DAILY" and by else draw(st.integers(1, 4) | st.integers(1, most))
    return ";".join(part for part in (f"FREQ={freq}", by, f"INTERVAL={interval}") if part)


def by_dateutil(rule: Rule, *, due: date, after: date) -> date | None:
    """The first of the dates that RFC 5545 has for each day or weekday of the rule alone.

    Several at once are another matter: of BYDAY=MO,1MO dateutil takes the first Mondays only.
    """
    day_by_day = [replace(rule, month_days=(day,)) for day in rule.month_days]
    day_by_day += [replace(rule, weekdays=(weekday,)) for weekday in rule.weekdays]
    start, last = (datetime.combine(day, datetime.min.time()) for day in (due, after))
    found = [rrulestr(ending_short_months(str(one)), dtstart=start).after(last) for one in day_by_day or [rule]]
    return min((moment.date() for moment in found if moment), default=None)


def ending_short_months(text: str) -> str:
    """RFC 5545 leaves out a month that is too short for a day; with this it has the last of those that it has."""
    return re.sub(
        r"BYMONTHDAY=(29|30|31)",
        lambda day: f"BYMONTHDAY={','.join(map(str, range(28, int(day[1]) + 1)))};BYSETPOS=-1",
        text,
    )


@given(rules(most=60), st.dates(date(1990, 1, 1), date(2060, 1, 1)), st.integers(-50, 1500), st.integers(0, 20_000))
def test_the_next_date_is_dateutils(text: str, due: date, late: int, lasts: int) -> None:
    today = due + timedelta(days=late)
    rule = recurrence.read_rule(f"{text};UNTIL={due + timedelta(days=lasts)}", due)
    assert recurrence.find_next_date(rule, due=due, today=today) == by_dateutil(rule, due=due, after=max(due, today))


@given(
    rules(),
    st.dates(date(1970, 1, 1), LAST_DAY),
    st.dates(date(1970, 1, 1), LAST_DAY),
    st.none() | st.integers(1, 999).map("COUNT={}".format) | st.dates(date(1970, 1, 1)).map("UNTIL={:%Y%m%d}".format),
    st.booleans(),
)
def test_any_rule_of_the_subset(text: str, due: date, today: date, end: str | None, from_done: bool) -> None:
    if from_done:
        text = ";".join(part for part in text.split(";") if not part.startswith("BY")) + ";FROM=DONE"
    try:
        rule = recurrence.read_rule(f"{text};{end}" if end else text, due)
    except RepeatInvalid:
        assert end
        assert end < f"UNTIL={due:%Y%m%d}"
        return
    assert recurrence.parse_rule(str(rule)) == rule
    assert recurrence.read_rule(str(rule), due) == rule
    found = recurrence.find_next_date(rule, due=due, today=today)
    if found is None:
        return
    assert found > (today if from_done else max(due, today))
    assert found <= (rule.until or LAST_DAY)
    assert rule.count != 1


PIECES = ["FREQ=", "DAILY", "MONTHLY", ";", "BYDAY=", "5MO", ",", "COUNT=", "0", "9", "UNTIL=", "20271231", "FROM=DONE"]
ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=310)


@given(ANY_TEXT | st.lists(st.sampled_from(PIECES)).map("".join))
def test_any_text_is_read_or_rejected_in_one_sentence(text: str) -> None:
    try:
        rule = recurrence.read_rule(text, FRIDAY)
    except RepeatInvalid as rejected:
        assert_one_sentence(str(rejected))
    else:
        assert recurrence.parse_rule(str(rule)) == rule


DUE = date(2026, 11, 23)  # a Monday

WORDS = {
    "FREQ=DAILY": "every day",
    "FREQ=DAILY;INTERVAL=3": "every 3 days",
    "FREQ=DAILY;BYDAY=MO,TU,WE,TH,FR": "every weekday",
    "FREQ=WEEKLY": "every Monday",
    "FREQ=WEEKLY;BYDAY=TU,MO,FR": "every Monday, Tuesday and Friday",
    "FREQ=WEEKLY;INTERVAL=2": "every 2 weeks on Monday",
    "FREQ=WEEKLY;INTERVAL=2;BYDAY=MO,TU,WE,TH,FR": "every 2 weeks on weekdays",
    "FREQ=MONTHLY": "every month on the 23rd",
    "FREQ=MONTHLY;BYMONTHDAY=1,11,22": "every month on the 1st, the 11th and the 22nd",
    "FREQ=MONTHLY;INTERVAL=3;BYMONTHDAY=-1": "every 3 months on the last day",
    "FREQ=MONTHLY;BYDAY=2MO,-1FR": "every month on the last Friday and the second Monday",
    "FREQ=MONTHLY;INTERVAL=2;BYDAY=WE": "every 2 months on each Wednesday",
    "FREQ=YEARLY": "every year on 23 November",
    "FREQ=YEARLY;INTERVAL=4;BYMONTH=2;BYMONTHDAY=29": "every 4 years on 29 February",
    "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=-1": "every year on the last day of February",
    "FREQ=WEEKLY;FROM=DONE": "1 week after it is done",
    "FREQ=DAILY;INTERVAL=10;FROM=DONE": "10 days after it is done",
    "FREQ=DAILY;COUNT=5": "every day, 5 more times",
    "FREQ=DAILY;COUNT=1": "every day, for the last time",
    "FREQ=WEEKLY;UNTIL=20261231": "every Monday, until 31 Dec 2026",
}


@pytest.mark.parametrize("rule", WORDS)
def test_rule(rule: str) -> None:
    assert in_words.describe_repeat(str(read_rule(rule, DUE))) == WORDS[rule]


@pytest.mark.parametrize("rule", ["", "FREQ=HOURLY", "FREQ", "FREQ=WEEKLY;BYDAY=XX", "FREQ=DAILY;COUNT=many", "a=b=c"])
def test_unknown_rule(rule: str) -> None:
    assert in_words.describe_repeat(rule) == "repeats"
