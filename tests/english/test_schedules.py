"""Texts of schedules: which words are the repeat and time, at the beginning or the end, and which are the rest."""

from datetime import datetime

import pytest

import english

NOW = datetime(2026, 11, 30, 10, 0)  # a Monday
EVERY_FRIDAY, EVERY_DAY = "FREQ=WEEKLY;BYDAY=FR", "FREQ=DAILY"


@pytest.mark.parametrize(
    ("text", "repeat", "time", "rest"),
    [
        ("every Friday at 16:00 summarise what I did", EVERY_FRIDAY, "16:00", "summarise what I did"),
        ("Every morning tell me what is open", EVERY_DAY, "09:00", "tell me what is open"),
        ("every day at 18:00 list what is overdue", EVERY_DAY, "18:00", "list what is overdue"),
        ("every day at 6pm, list what is overdue", EVERY_DAY, "18:00", "list what is overdue"),
        ("sum up at 16:00 every Friday", EVERY_FRIDAY, "16:00", "sum up"),
        ("tell me what is due today every morning at 7", EVERY_DAY, "07:00", "tell me what is due today"),
        ("every morning at 7 tell me what is due today", EVERY_DAY, "07:00", "tell me what is due today"),
        ("every 1st of the month at 9 review", "FREQ=MONTHLY;BYMONTHDAY=1", "09:00", "review"),
        ("every week at 9 review", "FREQ=WEEKLY;BYDAY=TU", "09:00", "review"),
        ("every year on 24 December at 9 review", "FREQ=YEARLY;BYMONTH=12;BYMONTHDAY=24", "09:00", "review"),
        ("Please every Friday at 16:00 sum up", EVERY_FRIDAY, "16:00", "sum up"),
        ("sum up every Friday at 16:00, please!", EVERY_FRIDAY, "16:00", "sum up"),
        ("every Friday at 16:00 ask Bob, please", EVERY_FRIDAY, "16:00", "ask Bob, please"),
        ("every Friday summarise", EVERY_FRIDAY, None, "summarise"),
        ("every Friday at 16:00", EVERY_FRIDAY, "16:00", ""),
    ],
)
def test_repeat_time_and_rest(text: str, repeat: str, time: str | None, rest: str) -> None:
    read = english.read_schedule(text, NOW)
    assert read is not None
    assert (read.repeat, read.time and f"{read.time:%H:%M}", read.text) == (repeat, time, rest)


@pytest.mark.parametrize("text", ["", "please", "sum up", "every hour sum up", "tell me tomorrow at 9 what is open"])
def test_texts_without_a_repeat_at_an_end(text: str) -> None:
    assert english.read_schedule(text, NOW) is None
