"""A few of the kills that `python -m tests.chaos` does by the thousand: nothing is lost, nothing is done twice."""

import pytest

from tests.chaos import harness

pytestmark = pytest.mark.long(seconds=60)
SEED = 20_261_123


async def test_kills_while_people_and_programs_go_on() -> None:
    await harness.run(12, SEED)


async def test_kills_in_the_middle_of_agents_work() -> None:
    """Of the workspace, too: each step is told as what came of it, and no command goes on."""
    await harness.run(6, SEED, agents=True)
