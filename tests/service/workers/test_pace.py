from service.workers import Pace
from service.workers.pace import _MOST_PEOPLE


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_a_minutes_worth_at_once_then_evenly() -> None:
    clock = Clock()
    pace = Pace(60, clock=clock)
    assert [pace.wait("ann") for _ in range(60)] == [0] * 60
    assert 0.9 < pace.wait("ann") <= 1
    assert pace.wait("bob") == 0
    clock.now += 1
    assert pace.wait("ann") == 0
    assert pace.wait("ann") > 0
    clock.now += 3600
    assert [pace.wait("ann") for _ in range(60)] == [0] * 60
    assert pace.wait("ann") > 0


def test_refused_ones_do_not_count() -> None:
    clock = Clock()
    pace = Pace(1, clock=clock)
    assert pace.wait("ann") == 0
    for _ in range(100):
        assert 59 < pace.wait("ann") <= 60
    clock.now += 60
    assert pace.wait("ann") == 0


def test_without_a_limit_nobody_waits() -> None:
    pace = Pace(None)
    assert not any(pace.wait("ann") for _ in range(10_000))


def test_it_remembers_a_bounded_number_of_people() -> None:
    pace = Pace(1, clock=Clock())
    for number in range(_MOST_PEOPLE + 10):
        pace.wait(str(number))
    assert pace.wait(str(_MOST_PEOPLE + 9)) > 0
    assert pace.wait("0") == 0
