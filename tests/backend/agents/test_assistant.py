"""What every request of the agent pays for."""

from backend.agents.assistant import INSTRUCTIONS

MOST_CHARACTERS = 1_931  # 1.6 of what they were before tasks had dates


def test_the_instructions_stay_short() -> None:
    assert len(INSTRUCTIONS) <= MOST_CHARACTERS
