"""The grammar of due dates and of ranges of days; zones by name, and what a clock on a wall shows."""

from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common import clock
from common.recurrence import LAST_DAY
from mcp_server.errors import DateInvalid
from mcp_server.tasks import dates
from mcp_server.tasks.dates import Due

NOW = datetime(2026, 11, 22, 10, 54, 20)  # a Sunday
BERLIN = ZoneInfo("Europe/Berlin")
DENTIST = Due(date(2026, 11, 27), time(15, 0))
LATE = Due(date(2026, 11, 2), time(9, 0))
ALL_DAY = Due(date(2026, 11, 27))

DAYS = st.dates(date(1970, 1, 1), LAST_DAY)
DUES = st.builds(Due, DAYS, st.none() | st.times().map(lambda at: at.replace(second=0, microsecond=0)))
NOWS = st.datetimes(datetime(2020, 1, 1), datetime(2100, 1, 1))
ZONES = st.sampled_from(["Europe/Berlin", "Pacific/Auckland", "Pacific/Honolulu", "Asia/Kathmandu", "America/St_Johns"])

REJECTED_DUES = [
    *("", "null", "someday", "next week", "next Friday", "on friday", "fr", "tuesd", "27.11.2026", "11/27/2026"),
    *("3pm", "at 15:00", "15", "15:00 today", "15.00", "+3", "3d", "+3 d", "+1y", "+10000d", "1m", "++1d"),
    *("2026-11-27 none", "Foo 2026-11-27", "today 2026-11-27", "2026-11-27 15", "2026-11-27T", "all day"),
    *("+1d 15:00", "today 15:00Z", "Fri 15:00+01:00", "2026-11-27T15:00+24:00", "2026-11-27 all day 15:00"),
    *("2026-W48-5", "2026-331", "20261127", "\u0662026-11-27", "2026-11-27T15:00[Europe/Berlin]", "0000-01-01"),
    *("a\nb\x1b[31m" + "c" * 90, "tomorrow" + " " * 93, "2026-02-29", "Sun 2100-02-29 08:00", "2026-11-31"),
    *("2026-13-00", "1969-12-31", "3000-01-01", "0001-01-01", "-9999m", "2999-12-31T23:30-02:00"),
    *("1970-01-01T00:30+02:00", "25:00", "24:00", "today 15:60", "+0d", "-0w", "+00m"),
    *("Fri 2026-11-26", "monday 2026-11-27", "Sat 2026-03-01 9:00", "Wed 2026-11-27T15:00Z"),
]

READ: list[tuple[str, Due | None, str]] = [
    # the text, the date that the task has, the one that is read
    ("today", None, "Sun 2026-11-22"),
    ("tomorrow", None, "Mon 2026-11-23"),
    ("  ToMorrow ", None, "Mon 2026-11-23"),
    ("monday", None, "Mon 2026-11-23"),
    ("Fri", None, "Fri 2026-11-27"),
    ("Sunday", None, "Sun 2026-11-29"),
    ("2026-11-27", None, "Fri 2026-11-27"),
    ("Fri 2026-11-27", None, "Fri 2026-11-27"),
    ("FRIDAY  2026-11-27", None, "Fri 2026-11-27"),
    ("2028-02-29", None, "Tue 2028-02-29"),
    ("2000-02-29", None, "Tue 2000-02-29"),
    ("1970-01-01", None, "Thu 1970-01-01"),
    ("2999-12-31", None, "Tue 2999-12-31"),
    # a day alone keeps the clock time
    ("tomorrow", DENTIST, "Mon 2026-11-23 15:00"),
    ("Mon 2026-11-23", DENTIST, "Mon 2026-11-23 15:00"),
    ("Wed", LATE, "Wed 2026-11-25 09:00"),
    ("tomorrow", ALL_DAY, "Mon 2026-11-23"),
    ("2026-11-27 all day", DENTIST, "Fri 2026-11-27"),
    ("Tomorrow All  Day", DENTIST, "Mon 2026-11-23"),
    # a day and a time
    ("Mon 2026-11-23 15:00", LATE, "Mon 2026-11-23 15:00"),
    ("tomorrow 9:05", None, "Mon 2026-11-23 09:05"),
    ("fri 00:00", DENTIST, "Fri 2026-11-27 00:00"),
    ("today 08:00", None, "Sun 2026-11-22 08:00"),
    # a time alone
    ("14:30", DENTIST, "Fri 2026-11-27 14:30"),
    ("14:30", ALL_DAY, "Fri 2026-11-27 14:30"),
    ("14:30", LATE, "Mon 2026-11-02 14:30"),
    ("10:55", None, "Sun 2026-11-22 10:55"),
    ("10:54", None, "Sun 2026-11-22 10:54"),
    ("10:53", None, "Mon 2026-11-23 10:53"),
    ("9:00:30", None, "Mon 2026-11-23 09:00"),
    # shifts
    ("+3d", DENTIST, "Mon 2026-11-30 15:00"),
    ("-1d", DENTIST, "Thu 2026-11-26 15:00"),
    ("+2w", ALL_DAY, "Fri 2026-12-11"),
    ("+1m", DENTIST, "Sun 2026-12-27 15:00"),
    ("+1W", LATE, "Sun 2026-11-29 09:00"),
    ("-1d", LATE, "Sat 2026-11-21 09:00"),
    ("+1d", None, "Mon 2026-11-23"),
    ("+1m", Due(date(2027, 1, 31)), "Sun 2027-02-28"),
    ("+1m", Due(date(2028, 1, 31)), "Tue 2028-02-29"),
    ("+12m", Due(date(2028, 2, 29)), "Wed 2029-02-28"),
    ("-1m", Due(date(2027, 3, 31), time(8)), "Sun 2027-02-28 08:00"),
    ("+2m", Due(date(2026, 12, 31)), "Sun 2027-02-28"),
    ("+9999d", None, "Wed 2054-04-08"),
    # ISO's date and time, in the user's clock time; with an offset converted to it
    ("2026-11-27T15:00", None, "Fri 2026-11-27 15:00"),
    ("2026-11-27t15:00:59.5", DENTIST, "Fri 2026-11-27 15:00"),
    ("Fri 2026-11-27T15:00:00", LATE, "Fri 2026-11-27 15:00"),
    ("2026-11-27T15:00Z", None, "Fri 2026-11-27 16:00"),
    ("2026-11-27 15:00:00.123456789z", None, "Fri 2026-11-27 16:00"),
    ("2026-11-27T15:00 +00:00", None, "Fri 2026-11-27 16:00"),
    ("Fri 2026-11-27T23:30-0500", None, "Sat 2026-11-28 05:30"),
    ("2026-11-27T00:15+05:45", None, "Thu 2026-11-26 19:30"),
    ("2026-07-27T15:00+02", None, "Mon 2026-07-27 15:00"),
    # where Berlin's clocks change: what is written without an offset stands, whether the clock shows it or not
    ("2027-03-28 02:30", None, "Sun 2027-03-28 02:30"),
    ("2027-03-28T00:59Z", None, "Sun 2027-03-28 01:59"),
    ("2027-03-28T01:00Z", None, "Sun 2027-03-28 03:00"),
    ("2027-03-28T02:30+01:00", None, "Sun 2027-03-28 03:30"),
    ("2027-03-28T02:30+02:00", None, "Sun 2027-03-28 01:30"),
    ("2027-10-31 02:30", None, "Sun 2027-10-31 02:30"),
    ("2027-10-31T02:30+02:00", None, "Sun 2027-10-31 02:30"),
    ("2027-10-31T02:30+01:00", None, "Sun 2027-10-31 02:30"),
    ("2027-10-31T01:30Z", None, "Sun 2027-10-31 02:30"),
    ("2027-10-31T02:00Z", None, "Sun 2027-10-31 03:00"),
    ("+1d", Due(date(2027, 3, 27), time(2, 30)), "Sun 2027-03-28 02:30"),
    ("+1w", Due(date(2027, 10, 24), time(2, 30)), "Sun 2027-10-31 02:30"),
]


@pytest.mark.parametrize("text", REJECTED_DUES)
def test_a_due_date_that_cannot_be_read(text: str) -> None:
    with pytest.raises(DateInvalid) as rejected:
        dates.read_due(text, now=NOW, zone=BERLIN)
    assert_one_sentence(str(rejected.value))


@pytest.mark.parametrize(("text", "current", "expected"), READ)
def test_a_due_date_is_read(text: str, current: Due | None, expected: str) -> None:
    read = dates.read_due(text, now=NOW, zone=BERLIN, current=current)
    assert read != "next"
    assert dates.render_due(read) == expected


@pytest.mark.parametrize("current", [None, DENTIST])
def test_none_takes_the_date_away_and_next_skips(current: Due | None) -> None:
    assert dates.read_due(" None", now=NOW, current=current) is None
    assert dates.read_due("NEXT ", now=NOW, current=current) == "next"


def test_without_a_zone_an_offset_is_converted_to_utc() -> None:
    assert dates.read_due("2026-11-27T15:00+05:30", now=NOW) == Due(date(2026, 11, 27), time(9, 30))


@pytest.mark.parametrize(
    ("zone", "today"),
    [("Pacific/Tongatapu", "Sun 2026-11-22"), ("Pacific/Honolulu", "Sat 2026-11-21"), ("UTC", "Sun 2026-11-22")],
)
def test_ten_minutes_before_midnight_words_are_of_the_users_own_day(zone: str, today: str) -> None:
    """Tonga is 13 hours ahead of UTC, Hawaii 10 behind: their days are never both UTC's."""
    there = ZoneInfo(zone)
    now = datetime.strptime(f"{today[4:]} 23:50", "%Y-%m-%d %H:%M")
    assert dates.render_due(due(dates.read_due("today", now=now, zone=there))) == today
    for text in ("tomorrow", "+1d", "23:49"):
        read = due(dates.read_due(text, now=now, zone=there))
        assert read is not None
        assert read.day == now.date() + timedelta(days=1)
    this_instant = now.replace(tzinfo=there).astimezone(UTC)
    assert due(dates.read_due(f"{this_instant:%Y-%m-%dT%H:%MZ}", now=now, zone=there)) == Due(now.date(), now.time())


def due(read: Due | dates.Next | None) -> Due | None:
    assert read != "next"
    return read


@given(DUES | st.none(), NOWS, ZONES)
def test_what_is_shown_is_read_again(date_of_it: Due | None, now: datetime, zone: str) -> None:
    shown = dates.render_due(date_of_it)
    for text in (shown, shown.upper(), f" {shown.lower()} "):
        for current in (None, date_of_it):
            assert dates.read_due(text, now=now, zone=ZoneInfo(zone), current=current) == date_of_it


@given(st.datetimes(datetime(1971, 1, 1), datetime(2099, 1, 1), timezones=st.just(UTC)), ZONES, ZONES)
def test_an_instant_is_the_same_whichever_offset_it_is_written_with(instant: datetime, zone: str, other: str) -> None:
    instant = instant.replace(second=0, microsecond=0)
    here, there = instant.astimezone(ZoneInfo(zone)), instant.astimezone(ZoneInfo(other))
    read = due(dates.read_due(f"{there:%a} {there.isoformat()}", now=NOW, zone=ZoneInfo(zone)))
    assert read == Due(here.date(), here.time().replace(second=0))


@given(DAYS.filter(lambda day: date(1970, 1, 4) < day < date(2999, 12, 28)), st.integers(0, 6), NOWS)
def test_both_readings_of_a_wrong_weekday_can_be_read(day: date, weekday: int, now: datetime) -> None:
    name = f"{date(2026, 11, 23) + timedelta(days=weekday):%A}"
    text = f"{name} {day}"
    if day.weekday() == weekday:
        assert dates.read_due(text, now=now) == Due(day)
        return
    with pytest.raises(DateInvalid, match=f"is not a {name}. Write") as rejected:
        dates.read_due(text, now=now)
    both = str(rejected.value).partition("Write ")[2].removesuffix(".").split(" or ")
    read = [due(dates.read_due(reading, now=now)) for reading in both]
    assert read[0] == Due(day)
    assert read[1] is not None
    assert read[1].day.weekday() == weekday
    assert abs(read[1].day - day) <= timedelta(days=3)


ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=120)
PIECES = [
    "fri",
    "today",
    "2026-11-27",
    "2026-02-30",
    " ",
    "t",
    "15:00",
    "24:00",
    "z",
    "+02:00",
    "+1",
    "d",
    "m",
    "..",
    "all day",
]


@given(ANY_TEXT | st.lists(st.sampled_from(PIECES), max_size=7).map("".join), NOWS, ZONES, DUES | st.none())
def test_any_text_is_read_or_rejected_in_one_sentence(text: str, now: datetime, zone: str, current: Due | None) -> None:
    try:
        read = dates.read_due(text, now=now, zone=ZoneInfo(zone), current=current)
    except DateInvalid as rejected:
        assert_one_sentence(str(rejected))
    else:
        assert read in (None, "next") or (isinstance(read, Due) and 1970 <= read.day.year <= 2999)


def assert_one_sentence(sentence: str) -> None:
    assert sentence.isprintable()
    assert sentence.endswith(".")
    assert ". Write " in sentence
    assert len(sentence) < 400


UNREADABLE_RANGES = [
    *("", "..", "...", "this week", "+3d", "15:00", "today 15:00", "a..b", "today...", "today..x", "x..today"),
    *("today.." + " " * 94, "today..tomorrow..monday", "2026-11-29..2026-11-23", "sat..fri"),
    *("2026-11-01..2026-11-31", "Mon 2026-11-22.."),
]


@pytest.mark.parametrize("text", UNREADABLE_RANGES)
def test_a_range_that_cannot_be_read(text: str) -> None:
    for read in (dates.read_due_range, dates.read_completion_range):
        with pytest.raises(DateInvalid) as rejected:
            read(text, now=NOW)
        assert_one_sentence(str(rejected.value))


ENDS = ["", "today", "Fri", "fri 2026-11-27", "2026-02-30", "2026-11-27 15:00", "overdue", "1969-01-01", "none"]


@given(ANY_TEXT | st.lists(st.sampled_from([*ENDS, ".."])).map("".join))
def test_any_text_is_a_range_or_rejected_in_one_sentence(text: str) -> None:
    try:
        found = dates.read_due_range(text, now=NOW)
    except DateInvalid as rejected:
        assert_one_sentence(str(rejected))
    else:
        assert found.first is None or found.last is None or found.first <= found.last


@pytest.mark.parametrize("name", ["Europe/Berlin", "America/Argentina/Buenos_Aires", "Etc/GMT+12", "UTC", "Asia/Tokyo"])
def test_known_zone(name: str) -> None:
    assert clock.find_zone(name) is not None


@pytest.mark.parametrize(
    "name",
    [
        "",
        "Mars/Olympus",
        "Europe",
        "europe/berlin",
        "localtime",
        "/etc/localtime",
        "/usr/share/zoneinfo/UTC",
        "../../etc/passwd",
        "Europe/../UTC",
        "Europe/Berlin\n",
        "Europe//Berlin",
        "Europe/Bérlin",
        "CET-1CEST",
        "A" * 65,
        "A\0",
    ],
)
def test_unknown_zone(name: str) -> None:
    assert clock.find_zone(name) is None


@pytest.mark.parametrize(
    ("instant", "zone", "shown"),
    [
        ("2026-11-22T09:54:00Z", "Europe/Berlin", "Sun 2026-11-22 10:54, Europe/Berlin"),
        ("2026-11-22T10:50:00Z", "Pacific/Tongatapu", "Sun 2026-11-22 23:50, Pacific/Tongatapu"),
        ("2026-11-23T09:50:00Z", "Pacific/Honolulu", "Sun 2026-11-22 23:50, Pacific/Honolulu"),
        ("2026-03-29T00:59:00Z", "Europe/Berlin", "Sun 2026-03-29 01:59, Europe/Berlin"),
        ("2026-03-29T01:00:00Z", "Europe/Berlin", "Sun 2026-03-29 03:00, Europe/Berlin"),
        ("2026-10-25T00:30:00Z", "Europe/Berlin", "Sun 2026-10-25 02:30, Europe/Berlin"),
        ("2026-10-25T01:30:00Z", "Europe/Berlin", "Sun 2026-10-25 02:30, Europe/Berlin"),
        ("2028-02-29T12:00:00Z", "UTC", "Tue 2028-02-29 12:00, UTC"),
        ("2028-02-28T10:50:00Z", "Pacific/Tongatapu", "Mon 2028-02-28 23:50, Pacific/Tongatapu"),
        ("2028-03-01T09:50:00Z", "Pacific/Honolulu", "Tue 2028-02-29 23:50, Pacific/Honolulu"),
        ("2026-11-22T09:54:00Z", "Mars/Olympus", "Sun 2026-11-22 09:54, UTC"),
    ],
)
def test_wall_clock(instant: str, zone: str, shown: str) -> None:
    assert clock.render_wall_clock(datetime.fromisoformat(instant), zone) == shown
