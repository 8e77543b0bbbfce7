"""The clock shows Sunday 2026-11-22, 10:30."""

import pytest

from mcp_server.imports.checked import stored
from mcp_server.imports.found import Found, PartUnread
from mcp_server.imports.todoist_dates import read
from tests.mcp_server.imports.read import NOW

DAYS = {
    "2026-11-27": "Fri 2026-11-27",
    "2026-11-27 15:00": "Fri 2026-11-27 15:00",
    "2026-11-27 3pm": "Fri 2026-11-27 15:00",
    "2026-11-27T15:00:00Z": "Fri 2026-11-27 16:00",
    "Oct 5 2026": "Mon 2026-10-05",
    "27 Nov 2026": "Fri 2026-11-27",
    "November 27, 2026 at 9": "Fri 2026-11-27 09:00",
    "27th nov 9am": "Fri 2026-11-27 09:00",
    "Nov 21": "Sun 2027-11-21",
    "Nov 22": "Sun 2026-11-22",
    "29 Feb": "Tue 2028-02-29",
    "today": "Sun 2026-11-22",
    "today at 9": "Sun 2026-11-22 09:00",
    "tomorrow 18:00": "Mon 2026-11-23 18:00",
    "Monday 12am": "Mon 2026-11-23 00:00",
    "sunday at 12 pm": "Sun 2026-11-29 12:00",
}
REPEATS = {
    "every day": ("Sun 2026-11-22", "FREQ=DAILY"),
    "daily": ("Sun 2026-11-22", "FREQ=DAILY"),
    "every day at 9": ("Mon 2026-11-23 09:00", "FREQ=DAILY"),
    "every day 21:00": ("Sun 2026-11-22 21:00", "FREQ=DAILY"),
    "every morning": ("Mon 2026-11-23 09:00", "FREQ=DAILY"),
    "every monday at 9": ("Mon 2026-11-23 09:00", "FREQ=WEEKLY;BYDAY=MO"),
    "every sun": ("Sun 2026-11-22", "FREQ=WEEKLY;BYDAY=SU"),
    "every mon, wed and fri 18:30": ("Mon 2026-11-23 18:30", "FREQ=WEEKLY;BYDAY=MO,WE,FR"),
    "every other monday": ("Mon 2026-11-23", "FREQ=WEEKLY;INTERVAL=2;BYDAY=MO"),
    "every weekday": ("Mon 2026-11-23", "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR"),
    "every weekend": ("Sat 2026-11-28", "FREQ=WEEKLY;BYDAY=SA"),
    "every 3 days starting 5 Dec 2026": ("Sat 2026-12-05", "FREQ=DAILY;INTERVAL=3"),
    "every 2 weeks at 9 starting on Dec 5": ("Sat 2026-12-05 09:00", "FREQ=WEEKLY;INTERVAL=2;BYDAY=SA"),
    "every week until 24 Dec": ("Sun 2026-11-22", "FREQ=WEEKLY;BYDAY=SU;UNTIL=20261224"),
    "every month": ("Sun 2026-11-22", "FREQ=MONTHLY;BYMONTHDAY=22"),
    "every! 3 months": ("Sun 2026-11-22", "FREQ=MONTHLY;INTERVAL=3;FROM=DONE"),
    "every! monday": ("Mon 2026-11-23", "FREQ=WEEKLY;BYDAY=MO"),
    "every 27th": ("Fri 2026-11-27", "FREQ=MONTHLY;BYMONTHDAY=27"),
    "every 1st, 15th of the month": ("Tue 2026-12-01", "FREQ=MONTHLY;BYMONTHDAY=1,15"),
    "every last day": ("Mon 2026-11-30", "FREQ=MONTHLY;BYMONTHDAY=-1"),
    "every 3rd friday": ("Fri 2026-12-18", "FREQ=MONTHLY;BYDAY=3FR"),
    "every last friday 5pm": ("Fri 2026-11-27 17:00", "FREQ=MONTHLY;BYDAY=-1FR"),
    "every jan 27th": ("Wed 2027-01-27", "FREQ=YEARLY;BYMONTH=1;BYMONTHDAY=27"),
    "every year starting 2027-01-01": ("Fri 2027-01-01", "FREQ=YEARLY;BYMONTH=1;BYMONTHDAY=1"),
}
UNREADABLE = (
    *("soon", "next week", "12/24/2026", "feb 30", "32 nov 2026", "at 9", "noon", "monday tuesday", "x" * 200),
    *("every", "every hour", "every 12 hours", "every day at 5", "every day at 25", "every day at 13pm", "every 40"),
    *("every second tuesday", "every other weekday", "every 6th friday", "every feb 30", "every purple friday"),
    *("tomorrow until friday", "every day until soon", "every day starting never", "every day from fri from sat"),
)


@pytest.mark.parametrize(
    ("text", "due", "repeat"),
    [(day, due, None) for day, due in DAYS.items()] + [(text, *meant) for text, meant in REPEATS.items()],
)
def test_what_can_mean_one_thing_only(text: str, due: str, repeat: str | None) -> None:
    given_due, given_repeat = read(text, NOW.local)
    told = stored(Found("line 1", (), "a", due=given_due, repeat=given_repeat), NOW).told()
    assert (told["due"], told["repeat"]) == (due, repeat)


@pytest.mark.parametrize("text", UNREADABLE)
def test_the_rest_is_refused(text: str) -> None:
    with pytest.raises(PartUnread, match=r"^DATE \".*\" is not understood: write a day \(2026-11-27\), "):
        read(text, NOW.local)


@pytest.mark.parametrize("text", ["", "  "])
def test_no_date_is_none(text: str) -> None:
    assert read(text, NOW.local) == (None, None)
