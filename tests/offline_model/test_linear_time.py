"""The time that a message takes to understand grows no faster than its length, whatever it repeats."""

import itertools
import time
from datetime import datetime

import pytest

from offline_model.model import MAX_CHARACTERS, find_intents

NOW = datetime(2026, 11, 22, 10, 1)
REPETITIONS = 4
_microseconds = itertools.count()
MAX_RATIO = 8  # for four times the length; where each word looks at all words it is 16
REPEATED = [
    *("put :, ", ":, ", ", ", ": ", "; ", "1, ", "9", "- a\n", "(", "a, add b, "),
    *("please ", "please x ", "and ", "and then add ", "add a and ", "delete ", "delete a, ", "mark a, ", "move a, "),
    *("move a to ", "the task, finish ", "rename a, ", "remind me to ", "show all my tasks ", "what's due, "),
    *('"a" ', "\"a 'b ", "“a” ", "2026-11-27 ", "5.12. ", "tomorrow at 9, ", "every mon and ", "in 3 days "),
    *("#a p1 ", "priority high ", "repeat every day ", "due ", "task 1 and ", "it's "),
    *("i would like to ", "中", "\U0001f95b "),
]


@pytest.mark.parametrize("repeated", REPEATED)
def test_time_is_linear_in_the_length(repeated: str) -> None:
    short = repeated * (MAX_CHARACTERS // len(repeated) // 4)
    short_seconds, long_seconds = (min(measure(text) for _ in range(REPETITIONS)) for text in (short, short * 4))
    assert long_seconds < MAX_RATIO * short_seconds + 0.005, (short_seconds, long_seconds)


def measure(request: str) -> float:
    """Returns the processor time, at another time of day for each call, so that no cache has the result."""
    now = NOW.replace(microsecond=next(_microseconds))
    began = time.thread_time()
    find_intents(request, now=now)
    return time.thread_time() - began
