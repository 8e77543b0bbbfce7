"""How often a backend waits for PostgreSQL to answer a message, counted on the wire."""

from statistics import median
from typing import Any

import pytest

from tests.scripted_model import ScriptedModel
from tests.support.backends import local_backend
from tests.support.database_relay import run_relay
from tests.support.script import add_task
from tests.support.stack import Stack
from tests.support.users import User

pytestmark = pytest.mark.long

TURNS = 9  # of which the median is taken, as the process also looks for runs of dead processes every second


@pytest.mark.parametrize(
    ("script", "round_trips"),
    [([add_task("milk"), {"text": "Added."}], 4), ([{"text": "Hello."}], 2)],
    ids=["with a tool call", "without"],
)
async def test_round_trips_of_a_message(
    script: list[dict[str, Any]], round_trips: int, stack: Stack, model: ScriptedModel
) -> None:
    async with run_relay(stack.services.database_url) as relay:
        settings = {"DATABASE_URL": relay.url, "LISTEN_DATABASE_URL": stack.services.database_url}
        async with local_backend(stack.services, **settings) as backend, User(backend) as user:
            await model.script(*script)
            thread = (await user.chatkit.say("hello")).thread_id
            counted: list[int] = []
            for _ in range(TURNS):
                await model.script(*script)
                before = relay.counts
                await user.chatkit.say("hello", thread)
                counted.append((relay.counts - before).round_trips)
    assert median(counted) == round_trips, counted
