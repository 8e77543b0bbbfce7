"""Users are served while somebody attacks the port: each kind of attack for a moment."""

import asyncio

import pytest

from tests import abuse
from tests.scripted_model import ScriptedModel
from tests.support.port_attacks import MEMORY_MB, memory_mb, start_attack
from tests.support.stack import Stack
from tests.support.users import User

pytestmark = pytest.mark.long(seconds=1)

SECONDS = 0.4
LOG_CHARACTERS = 20_000  # for an attack, and for each message of the user
ATTACKS = [("backend", name) for name in abuse.ABUSES] + [
    ("mcp_server", "chunks of one byte"),
    ("mcp_server", "half a body"),
]


@pytest.mark.parametrize(("attacked", "name"), ATTACKS)
async def test_users_are_served(stack: Stack, user: User, model: ScriptedModel, attacked: str, name: str) -> None:
    service = stack.backends[0] if attacked == "backend" else stack.services.mcp
    memory, log = memory_mb(service), len(service.log_text)
    process = await start_attack(service.port, attacked, name, SECONDS)
    attack = asyncio.create_task(process.communicate())
    messages = 0
    try:
        while not messages or not attack.done():
            answer = await user.chatkit.say("add milk")
            assert answer.error is None
            messages += 1
    finally:
        if not attack.done():
            process.kill()
        await attack
    assert process.returncode == 0
    assert memory_mb(service) < memory + MEMORY_MB
    assert len(service.log_text) < log + LOG_CHARACTERS * (1 + messages)
