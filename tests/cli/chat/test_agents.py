"""A conversation in the terminal whose assistant has agents, and a folder for them."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.backend.agents_at_work import coder
from tests.backend.conftest import Backend
from tests.backend.consent import call, calls
from tests.chatkit_client import ChatKit
from tests.cli.chat.conftest import Start
from tests.scripted_model import ScriptedModel

pytestmark = pytest.mark.long


@pytest.fixture
async def served(backend: Backend, with_agents: dict[str, Any]) -> AsyncIterator[ChatKit]:
    """Its agents ask before they run a command."""
    async with backend(**with_agents | {"approvals": ("run_command",)}) as client:
        yield client


async def test_what_agents_do_is_a_line_each_and_what_they_ask_is_asked_one_after_the_other(
    start: Start, model: ScriptedModel
) -> None:
    first, second = (call("run_command", command=f"echo {number} > {number}.txt") for number in (1, 2))
    await model.script(calls(coder("count")), calls(call("write_file", path="a.txt", content="x"), first, second))
    with start() as terminal:
        await terminal.wait_for(">")
        terminal.say("do it")
        text = await terminal.wait_for("● do with coder count", "└ coder: write file path: a.txt", "echo 1", "[y/N]")
        assert text.index("do with coder") < text.index("└ coder: count") < text.index("The assistant asks:")
        assert text.count("The assistant asks:") == 1
        await model.script({"text": "Counted."}, {"text": "All is done."})
        terminal.keys("n not this\r")
        text = await terminal.wait_for("Refused: not this", "[y/N]", "The assistant asks:", times=2)
        assert "echo 2" in text.rpartition("The assistant asks:")[2]
        terminal.say("y")
        text = await terminal.wait_for("Approved", "└ coder: completed", "  Counted.", "All is done.", "total")
        assert text.count("└ coder: write file") == text.count("└ coder: completed") == 1
        assert text.count("✗ The person refused this call") == 1
        terminal.say("/agents")
        await terminal.wait_for("> /agents", "└ coder: completed", times=2)
        terminal.say("/files")
        text = await terminal.wait_for("> /files", "2.txt · 2 bytes", "a.txt · 1 bytes")
        assert "1.txt ·" not in text


async def test_files_are_put_there_and_committed_and_a_conversation_that_begins_so_names_the_one_it_left(
    start: Start, model: ScriptedModel, served: ChatKit, tmp_path: Path
) -> None:
    (tmp_path / "notes.txt").write_text("one two\n")
    await model.script({"text": "Hello."}, {"text": "Seen."})
    with start("--thread", "mine") as terminal:
        await terminal.wait_for(">")
        terminal.say("hello")
        await terminal.wait_for("Hello.", "total")
        terminal.say("/clear")
        await terminal.wait_for("begins a new conversation")
        terminal.say(f"/put {tmp_path}/notes.txt")
        await terminal.wait_for("notes.txt is in the conversation's folder.")
        terminal.say("/files")
        await terminal.wait_for("notes.txt · 8 bytes")
        terminal.say("/commit first notes")
        await terminal.wait_for("> /commit first notes", "Committed as ")
        terminal.say("what is in it?")
        await terminal.wait_for("Seen.", "total", times=2)
    left = (await served.http.get("/chats/mine/log")).text
    threads = (await served.list_threads()).data
    assert f'"output": "{threads[0]["id"]}"' in left.splitlines()[-1]
    assert "session_clear" in left.splitlines()[-1]
