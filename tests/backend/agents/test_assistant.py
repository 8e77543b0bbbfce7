"""What every request of the agent pays for."""

import pytest

from backend.agents.assistant import instructions

MOST_CHARACTERS = 1_931  # 1.6 of what they were before tasks had dates


@pytest.mark.parametrize("asks", [True, False])
def test_the_instructions_stay_short(asks: bool) -> None:
    assert len(instructions(asks=asks)) <= MOST_CHARACTERS


def test_the_person_is_not_asked_twice_before_many_tasks_are_deleted() -> None:
    words = "say how many and ask"
    assert words in instructions(asks=False)
    assert words not in instructions(asks=True)
