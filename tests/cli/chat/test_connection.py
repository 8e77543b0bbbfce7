"""The server gone in the middle of an answer, and back: whoever reads it has all of it then, and nothing twice."""

import asyncio
import os
import re
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.backend.conftest import Backend, Rows
from tests.backend.consent import calls
from tests.chatkit_client import ChatKit
from tests.cli.chat.relay import Relay
from tests.cli.chat.terminal import Terminal
from tests.conftest import ROOT
from tests.scripted_model import ScriptedModel
from tests.waiting import until

pytestmark = pytest.mark.long

WORDS = [f"word{number}" for number in range(160)]
# Paragraphs of ten words.
TEXT = "\n\n".join(" ".join(WORDS[begin : begin + 10]) for begin in range(0, len(WORDS), 10))
SLOW: dict[str, Any] = {"text": TEXT, "chunk_chars": 12, "token_delay": 0.02}
ADDING = calls({"name": "add_task", "arguments": {"title": "milk"}}, text="I add it.")


@pytest.fixture
async def relay(served: ChatKit) -> AsyncIterator[Relay]:
    relay = Relay(served.base_url)
    await relay.mend()
    yield relay
    relay.cut()


def check_once(text: str) -> None:
    assert re.findall(r"word\d+", text) == WORDS
    assert text.count("I add it.") == 1


async def test_an_answer_goes_on_in_another_process(
    relay: Relay, backend: Backend, model: ScriptedModel, tmp_path: Path
) -> None:
    await model.script(ADDING, SLOW)
    async with backend() as other:
        with Terminal("--url", relay.url, "--data-dir", str(tmp_path)) as terminal:
            await terminal.wait_for(">")
            terminal.say("add milk and go on")
            await terminal.wait_for("word15")
            relay.cut()
            await terminal.wait_for("The connection is lost; trying again …")
            await relay.mend(other.base_url)
            text = await terminal.wait_for("It is back.", "total")
    check_once(text)
    assert text.count("✓ add task 1 milk") == 1


async def test_what_is_told_again_from_its_beginning_is_shown_once(
    relay: Relay, model: ScriptedModel, rows: Rows, tmp_path: Path
) -> None:
    """As after ten minutes, when only what is stored is known of it."""
    await model.script(ADDING, SLOW, ADDING, SLOW)
    with Terminal("--url", relay.url, "--data-dir", str(tmp_path)) as terminal:
        await terminal.wait_for(">")
        terminal.say("add milk and go on")
        await terminal.wait_for("word5")
        command = [sys.executable, "-P", "-m", "cli", "chat", "--url", relay.url, "--exec", "add milk and go on"]
        environment, pipe = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)}, asyncio.subprocess.PIPE
        once = await asyncio.create_subprocess_exec(*command, cwd=ROOT, env=environment, stdout=pipe, stderr=pipe)
        assert once.stdout is not None
        said = await once.stdout.readuntil(b"word15")
        relay.cut()
        await terminal.wait_for("The connection is lost; trying again …")
        await until(lambda: not rows("SELECT 1 FROM runs WHERE status <> 'ended'"))
        rows("DELETE FROM run_events")
        rows("UPDATE runs SET ended_at = ended_at - interval '1 hour', followed = false")
        await relay.mend()
        text = await terminal.wait_for("It is back.", "total")
        rest, told = await asyncio.wait_for(once.communicate(), 30)
    check_once(text)
    check_once((said + rest).decode())
    assert text.count("✓ add task") == told.decode().count("✓ add task") == 1
    assert once.returncode == 0
