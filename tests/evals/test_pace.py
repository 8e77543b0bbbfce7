import time

from evals.pace import Pace


async def test_what_was_asked_is_paid_for_before_the_next_message() -> None:
    pace = Pace(1_200)
    began = time.monotonic()
    await pace.wait()
    pace.asked(4)
    pace.asked(2)
    await pace.wait()
    assert time.monotonic() - began >= 0.3


async def test_without_a_limit_nothing_is_waited_for() -> None:
    pace = Pace(None)
    await pace.wait()
    pace.asked(1_000_000)
    began = time.monotonic()
    await pace.wait()
    assert time.monotonic() - began < 1
