"""A short run of `python -m tests.chaos`: services are killed, nothing is lost, and nothing is done twice."""

import pytest

from tests.chaos import harness

pytestmark = pytest.mark.long(seconds=30)
SEED = 20_261_123


async def test_kills_while_users_talk() -> None:
    """Each of the three parts is killed once before any is killed again."""
    await harness.run_kills(4, SEED)


async def test_kills_while_agents_work() -> None:
    """The workspace is killed, too: each call has a result, and no command goes on running."""
    await harness.run_kills(4, SEED, agents=True)
