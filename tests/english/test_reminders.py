"""When a task reminds, as users write it; it is Monday 2026-11-23 10:40."""

from datetime import datetime

import pytest

from english import read_task

NOW = datetime(2026, 11, 23, 10, 40)
MUM = "call mum tomorrow 15:00"
TOMORROW = "Tue 2026-11-24 15:00"
NEEDS_TIME = "A reminder needs a time, such as 15:00."


@pytest.mark.parametrize(
    ("phrase", "minutes"),
    [
        *(("remind me 10 minutes before", 10), ("Remind me 10 min before.", 10), ("remind me 10m before", 10)),
        *(("remind me an hour before", 60), ("remind me half an hour before", 30), ("remind me 1h before", 60)),
        *(("remind me an hour and a half before", 90), ("remind me 1.5 hours before", 90)),
        *(("remind me 1 hour and 30 minutes before", 90), ("remind me a day before", 1440)),
        *(("remind me two days in advance", 2880), ("remind me a week ahead of time", 10_080)),
        *(("remind me 4 weeks before", 40_320), ("remind 1 day before", 1440), ("reminder 15 minutes before", 15)),
        *(("reminder: 30 min before", 30), ("with a 30 minute reminder", 30), ("alert me 5 minutes early", 5)),
        *(("set a reminder for 20 minutes before it starts", 20), ("and please remind me an hour before, thanks", 60)),
        *(("can you remind me 10 minutes beforehand?", 10), ("(remind me an hour before)", 60)),
        *(("remind me at the time", 0), ("remind me when it's due", 0), ("reminder at the due time", 0)),
        *(("with no reminder", "none"), ("no reminder", "none"), ("without a reminder", "none")),
        *(("don't remind me", "none"), ("but do not notify me", "none"), ("no reminders", "none")),
        *(("remind me at 14:30", 30), ("remind me at 2", 60), ("remind me at 9", 360), ("remind me at 3pm", 0)),
        *(("remind me today at 15:00", 1440), ("and remind me at 2:50 pm please", 10)),
    ],
)
@pytest.mark.parametrize("joint", [" ", ", ", "; "])
def test_reminder_after_a_time(phrase: str, joint: str, minutes: int | str) -> None:
    reading = read_task(f"{MUM}{joint}{phrase}", NOW)
    due = reading.when and reading.when.due
    assert (reading.title, due, reading.remind, reading.unread) == ("call mum", TOMORROW, minutes, ())
    assert [span.kind for span in reading.spans] == ["date", "time", "remind"]


@pytest.mark.parametrize(
    ("text", "title", "due", "minutes"),
    [
        ("remind me to call mum in 2 hours", "call mum", "Mon 2026-11-23 12:40", None),
        ("remind me to call mum at 15:00 10 minutes before", "call mum", "Mon 2026-11-23 15:00", 10),
        ("call mum at 15:00 10 minutes before", "call mum", "Mon 2026-11-23 15:00", 10),
        ("remind me at 9 to call mum", "call mum", "Tue 2026-11-24 09:00", None),
        ("call mum tomorrow, remind me at 9", "call mum", "Tue 2026-11-24 09:00", None),
        ("call mum, remind me tomorrow at 9", "call mum", "Tue 2026-11-24 09:00", None),
        ("call mum and remind me tomorrow", "call mum", "Tue 2026-11-24", None),
        ("call mum remind me at 9", "call mum", "Tue 2026-11-24 09:00", None),
        ("remind me 10 minutes before the dentist tomorrow 15:00", "the dentist", TOMORROW, 10),
        ("remind me an hour before: dentist tomorrow 15:00", "dentist", TOMORROW, 60),
        ("dentist tomorrow remind me an hour early 15:00", "dentist", TOMORROW, 60),
        ("dentist friday 15:00 remind me thursday at 9", "dentist", "Fri 2026-11-27 15:00", 1800),
        ("rent friday with no reminder #home p1", "rent", "Fri 2026-11-27", "none"),
        ("call mum without reminder", "call mum", None, "none"),
    ],
)
def test_reminder(text: str, title: str, due: str | None, minutes: int | str | None) -> None:
    reading = read_task(text, NOW)
    assert (reading.title, reading.when and reading.when.due, reading.remind) == (title, due, minutes)
    assert reading.unread == ()


def test_reminder_of_a_repeat() -> None:
    reading = read_task("pills every day at 9 remind me at 8:50", NOW)
    assert (reading.title, reading.when and reading.when.repeat, reading.remind) == ("pills", "FREQ=DAILY", 10)


@pytest.mark.parametrize(
    ("text", "title", "unread", "reason"),
    [
        ("rent friday remind me a day before", "rent remind me a day before", "remind me a day before", NEEDS_TIME),
        ("dentist, remind me an hour before", "=", "remind me an hour before", NEEDS_TIME),
        ("remind me 10 minutes before the dentist", "=", "remind me 10 minutes before", NEEDS_TIME),
        *(
            (f"{MUM}, {phrase}", f"call mum, {phrase}", phrase, reason)
            for phrase, reason in (
                ("remind me 5 weeks before", "at most 28 days"),
                ("remind me 2 months before", "Write it like"),
                ("remind me the evening before", "Write it like"),
                ("remind me at 16:00", "not before the due time"),
                ("remind me wednesday at 9", "not before the due time"),
                ("remind me today", NEEDS_TIME),
                ("remind me every day at 9", NEEDS_TIME),
            )
        ),
        ("remind me an hour before sunset to close the windows", "=", "remind me an hour before", "like"),
        (
            f"{MUM} remind me an hour before and 10 minutes before",
            "call mum remind me an hour before and 10 minutes before",
            "remind me an hour before",
            "one reminder",
        ),
    ],
)
def test_reminder_that_is_left_whole(text: str, title: str, unread: str, reason: str) -> None:
    reading = read_task(text, NOW)
    assert (reading.title, reading.remind) == (text if title == "=" else title, None)
    [first, *_] = [span for span in reading.spans if span.kind == "unread"]
    assert unread in first.text
    assert reason in first.reason


@pytest.mark.parametrize(
    "text",
    [
        *("ask bob to remind me", "remind mum 10 minutes before lunch", "turn off reminder emails", "remind me"),
        *("buy no reminders", "write about reminders before bed", "have Bob remind me", "fix reminder bug"),
        *(
            "leave home 10 minutes before",
            "read no reminder of the past",
            "check why the app does not remind me to drink",
        ),
    ],
)
def test_title_about_reminders(text: str) -> None:
    reading = read_task(text, NOW)
    assert (reading.title, reading.when, reading.remind) == (text, None, None)


def test_words_of_time_that_stay_in_the_title() -> None:
    text = f"{MUM} remind me 10 minutes before"
    reading = read_task(text, NOW, dates=False)
    assert (reading.title, reading.remind, reading.spans) == (text, None, ())
