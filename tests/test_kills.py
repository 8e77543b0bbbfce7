"""Thirty kills of what `python -m tests.chaos` does a thousand of: nothing is lost, nothing is done twice."""

import pytest

from tests.chaos import harness

SEED = 20_261_123


@pytest.mark.long
@pytest.mark.alone
async def test_thirty_kills_while_people_and_programs_go_on() -> None:
    await harness.run(30, SEED)
