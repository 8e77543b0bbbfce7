"""How long the reading of a text takes at most, whatever it repeats: it holds the event loop of a server."""

import time
from datetime import datetime

import pytest

from english import read_task, read_when

NOW = datetime(2026, 11, 23, 10, 40)
SECONDS = 0.3  # of processor time: many times what it takes, and a fraction of what took quadratic time
REPEATED = [
    *("a-", "a.b/", "_", "1_", "a@", "a@b.", '"', "'a ", "://", "\u00e9", "\U0001f600", "\x00", "a+", ",", "1:", "-1"),
    *("#a", "@a ", "p1 ", "!1 ", "mon ", "mon, ", "(mon) ", "every mon and ", "1st ", "the 1 st, ", "at 5 and "),
    *("in 2 hours ", "by ", "because ", "after i last ", "jan ", "3 times a ", "last have ", "10pm or ", "from 1 to "),
    *("in 1 hour and ", "1h30m", "1 day, ", "#c+", "#", "@", "#.", "mon-", "5%", "1:1 ", "please ", "remind me at 5 "),
    *(", thanks", "every mon to ", "um 9 ", "\u660e\u5929", "hey ", "every 2 - 3 days ", "every monday unless a "),
]


@pytest.mark.parametrize("repeated", REPEATED)
def test_a_long_text_is_read_in_linear_time(repeated: str) -> None:
    text = (repeated * 1_000)[:1_000]
    read_task(repeated, NOW)
    assert min(_measure(text, count) for count in range(3)) < SECONDS


def _measure(text: str, count: int) -> float:
    started = time.thread_time()
    read_task(f"{text}{count}", NOW)
    read_when(f"{text[:100]}{count}", NOW)
    return time.thread_time() - started
