"""Repeats in plain words, for every rule that the task tools store."""

from datetime import date

import pytest

from common import repeats
from mcp_server.tasks.repeats import read_rule

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
    assert repeats.describe_repeat(str(read_rule(rule, DUE))) == WORDS[rule]


@pytest.mark.parametrize("rule", ["", "FREQ=HOURLY", "FREQ", "FREQ=WEEKLY;BYDAY=XX", "FREQ=DAILY;COUNT=many", "a=b=c"])
def test_unknown_rule(rule: str) -> None:
    assert repeats.describe_repeat(rule) == "repeats"
