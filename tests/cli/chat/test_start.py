"""Where no assistant runs, one is started from the conversation, and stopped again."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.chat.terminal import CTRL_C, CTRL_D, Terminal
from tests.conftest import ROOT, find_free_port

pytestmark = pytest.mark.long


async def test_it_is_started_on_request_and_stopped_by_down(shared_dir: Path) -> None:
    data = ("--data-dir", str(shared_dir / "data"))
    ports = {f"{part}_PORT": str(find_free_port()) for part in ("BACKEND", "MCP", "WORKSPACE")}
    environment = {**ports, "LLM_PROVIDER": "offline", "AGENTS": "off"}

    async def todo(*command: str) -> tuple[int, str]:
        asked = [sys.executable, "-m", "cli", *command, *data]
        done = await asyncio.to_thread(subprocess.run, asked, cwd=ROOT, env=os.environ.copy(), capture_output=True)
        return done.returncode, done.stdout.decode()

    with Terminal(*data, environment=environment) as terminal:
        await terminal.wait_for("Start one here in the background? [Y/n]")
        terminal.say("n")
        assert await terminal.ended() == 2
    try:
        with Terminal(*data, environment=environment) as terminal:
            await terminal.wait_for("No server is running at", "[Y/n]")
            terminal.say("y")
            await terminal.wait_for("The server is running. ./todo down stops it.")
            terminal.say("add milk")
            await terminal.wait_for('Added "milk".', "total")
            terminal.keys(CTRL_C, CTRL_D)
            assert await terminal.ended() == 0
        with Terminal(*data, "--continue", environment=environment) as terminal:
            await terminal.wait_for("> add milk", 'Added "milk".')
    finally:
        stopped = await todo("down")
    assert stopped == (0, "Stopped.\n")
    assert (await todo("down"))[0] == 1
    typed = shared_dir / "data" / "chat_history"
    assert "add milk" in typed.read_text()
    assert (await todo("forget", "--user", "local", "--yes"))[0] == 0
    assert not typed.exists()
