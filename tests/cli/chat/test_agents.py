"""A conversation in the terminal whose assistant has agents, and a folder for them."""

from pathlib import Path

import pytest

from tests.chatkit_client import ChatKit
from tests.cli.chat.conftest import Start
from tests.scripted_model import ScriptedModel
from tests.support.script import call, calls, start_coder

pytestmark = pytest.mark.long


async def test_agent_at_work(start: Start, model: ScriptedModel) -> None:
    first, second = (
        call("run_command", command=f"echo {number} > {number}.txt; seq 20 | sed s/^/line-/") for number in (1, 2)
    )
    await model.script(start_coder("count"), calls(call("write_file", path="a.txt", content="x"), first, second))
    with start() as terminal:
        await terminal.wait_for(">")
        terminal.say("do it")
        await terminal.wait_for("The assistant asks:", "[y/N]")
        terminal.say("y")  # the coder may start
        await terminal.wait_for("Approved")
        shown = ("● do with coder count", "└ coder: write file path: a.txt", "echo 1", "[y/N]")
        text = await terminal.wait_for(*shown, "The assistant asks:", times=2)
        assert text.index("do with coder") < text.index("└ coder: count") < text.rindex("The assistant asks:")
        assert text.count("The assistant asks:") == 2
        await model.script({"text": "Counted."}, {"text": "All is done."})
        terminal.keys("n not this\r")
        text = await terminal.wait_for("Rejected: not this", "[y/N]", "The assistant asks:", times=3)
        assert "echo 2" in text.rpartition("The assistant asks:")[2]
        terminal.say("y")
        text = await terminal.wait_for("Approved", "└ coder: completed", "  Counted.", "All is done.", "total")
        assert text.count("└ coder: write file") == text.count("└ coder: completed") == 1
        assert text.count("└ coder: run command") == 1, "what was rejected was not run"
        assert "Not done." not in text
        assert "    12 more lines above\n    line-13\n" in text
        assert "    line-20\n" in text
        terminal.say("/agents")
        await terminal.wait_for("> /agents", "└ coder: completed", times=2)
        terminal.say("/files")
        text = await terminal.wait_for("> /files", "2.txt · 2 bytes", "a.txt · 1 bytes")
        assert "1.txt ·" not in text


async def test_files(start: Start, model: ScriptedModel, served: ChatKit, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("one two\n")
    await model.script({"text": "Hello."}, {"text": "Seen."})
    with start("--thread", "mine") as terminal:
        await terminal.wait_for(">")
        terminal.say("hello")
        await terminal.wait_for("Hello.", "total")
        terminal.say("/clear")
        await terminal.wait_for("Your next message starts a new conversation")
        terminal.say(f"/put {tmp_path}/notes.txt")
        await terminal.wait_for("Added notes.txt to the conversation's files.")
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
