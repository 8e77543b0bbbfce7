"""How many commands run at once, and which limit is named to who has waited too long."""

from pathlib import Path

import pytest

from common.tool_server.errors import CallError
from workspace.commands.runner import ConcurrencyLimits


@pytest.mark.parametrize(
    ("user", "folder", "sentence"),
    [
        ("alice", "one", "Another command has been running in this folder for 0 seconds."),
        ("alice", "three", "2 of your commands are already running, which is the limit."),
        ("bob", "one of his", "The workspace already runs 3 commands of all users, which is its limit."),
    ],
)
async def test_the_limit_that_is_reached_is_named(user: str, folder: str, sentence: str) -> None:
    limits = ConcurrencyLimits(2, of_all=3, wait_seconds=0.05)
    async with limits.acquire("alice", Path("one")), limits.acquire("alice", Path("two")):
        async with limits.acquire("carol", Path("hers")):
            with pytest.raises(CallError, match=f"^{sentence}"):
                async with limits.acquire(user, Path(folder)):
                    pass
        async with limits.acquire("bob", Path("one of his")):
            pass
