"""The ranges of days that a list is asked for: what is refused and how, and what each holds."""

from datetime import date, datetime, time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_server.errors import DateInvalid
from mcp_server.tasks import dates
from mcp_server.tasks.dates import Due, Range

NOW = datetime(2026, 11, 22, 10, 54, 20)  # a Sunday

RANGES: list[tuple[str, Range]] = [
    ("any", Range()),
    (" None ", Range(undated=True)),
    ("OVERDUE", Range(overdue_at=NOW)),
    ("today", Range(date(2026, 11, 22), date(2026, 11, 22))),
    ("Tomorrow", Range(date(2026, 11, 23), date(2026, 11, 23))),
    ("Fri 2026-11-27", Range(date(2026, 11, 27), date(2026, 11, 27))),
    ("friday", Range(date(2026, 11, 27), date(2026, 11, 27))),
    ("2026-11-21..2026-11-22", Range(date(2026, 11, 21), date(2026, 11, 22))),
    ("Sat 2026-11-21 .. today", Range(date(2026, 11, 21), date(2026, 11, 22))),
    ("mon..fri", Range(date(2026, 11, 23), date(2026, 11, 27))),
    ("tomorrow..", Range(first=date(2026, 11, 23))),
    ("..2026-11-22", Range(last=date(2026, 11, 22))),
    ("today..today", Range(date(2026, 11, 22), date(2026, 11, 22))),
]
DAYS_ONLY = (
    "a day (Fri 2026-11-27, today, tomorrow, Friday), or two days with two dots between them, of which one may be "
    "left out (2026-11-23..2026-11-29)."
)
UNREADABLE_RANGES = [
    "",
    "..",
    "...",
    "this week",
    "+3d",
    "15:00",
    "today 15:00",
    "a..b",
    "today...",
    "today..x",
    "x..today",
]


@pytest.mark.parametrize(("text", "expected"), RANGES)
def test_a_range_is_read(text: str, expected: Range) -> None:
    assert dates.read_range(text, now=NOW) == expected
    if expected.first or expected.last:
        assert dates.read_done(text, now=NOW) == expected


@pytest.mark.parametrize("text", [*UNREADABLE_RANGES, "today.." + " " * 94, "today..tomorrow..monday"])
def test_a_range_that_cannot_be_read_is_refused_with_what_to_write(text: str) -> None:
    with pytest.raises(DateInvalid) as refused:
        dates.read_range(text, now=NOW)
    assert str(refused.value) == f'due "{text[:60]}" is not understood: write overdue, none, any, {DAYS_ONLY}'


@pytest.mark.parametrize("text", ["overdue", "none", "any", *UNREADABLE_RANGES])
def test_done_takes_days_only(text: str) -> None:
    with pytest.raises(DateInvalid) as refused:
        dates.read_done(text, now=NOW)
    assert str(refused.value) == f'done "{text}" is not understood: write {DAYS_ONLY}'


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            "2026-11-29..2026-11-23",
            "Sun 2026-11-29..Mon 2026-11-23 ends before it begins: write the earlier day first.",
        ),
        ("sat..fri", "Sat 2026-11-28..Fri 2026-11-27 ends before it begins: write the earlier day first."),
        ("2026-11-01..2026-11-31", "2026-11-31 is no day of the calendar: write one that exists, such as 2026-11-30."),
        ("Mon 2026-11-22..", "2026-11-22 is no Monday: write Sun 2026-11-22 or Mon 2026-11-23, whichever is meant."),
    ],
)
def test_a_range_of_other_days_than_it_says_is_refused(text: str, sentence: str) -> None:
    with pytest.raises(DateInvalid) as refused:
        dates.read_range(text, now=NOW)
    assert str(refused.value) == sentence


@pytest.mark.parametrize(
    ("text", "held"),
    [
        ("any", "yesterday, this morning, today, tonight, later"),
        ("none", "no date"),
        ("overdue", "yesterday, this morning"),
        ("today", "this morning, today, tonight"),
        ("tomorrow..", "later"),
        ("..today", "yesterday, this morning, today, tonight"),
    ],
)
def test_what_a_range_holds(text: str, held: str) -> None:
    tasks = {
        "no date": None,
        "yesterday": Due(date(2026, 11, 21)),
        "this morning": Due(date(2026, 11, 22), time(10, 54)),
        "today": Due(date(2026, 11, 22)),
        "tonight": Due(date(2026, 11, 22), time(10, 55)),
        "later": Due(date(2026, 12, 24), time(8)),
    }
    found = dates.read_range(text, now=NOW)
    assert ", ".join(name for name, date_of_it in tasks.items() if found.holds(date_of_it)) == held


ENDS = ["", "today", "Fri", "fri 2026-11-27", "2026-02-30", "2026-11-27 15:00", "overdue", "1969-01-01", "none"]


@given(
    st.text(st.characters(exclude_categories=()), max_size=120) | st.lists(st.sampled_from([*ENDS, ".."])).map("".join)
)
def test_any_text_is_read_or_refused_in_one_sentence(text: str) -> None:
    try:
        found = dates.read_range(text, now=NOW)
    except DateInvalid as refused:
        sentence = str(refused)
    else:
        assert found.first is None or found.last is None or found.first <= found.last
        return
    assert sentence.isprintable()
    assert ": write " in sentence
