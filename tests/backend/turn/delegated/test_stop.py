"""Stop in the middle of an agent's work: nothing follows, nothing is left unpaired, and what it did is known."""

import asyncio
import time
from typing import Any

import pytest

from tests.backend.completions import check_pairs
from tests.backend.conftest import Rows
from tests.backend.consent import call, calls
from tests.backend.turn.delegated.test_agents import coder
from tests.chatkit_client import ChatKit, user_input
from tests.scripted_model import ScriptedModel
from tests.waiting import until
from tests.workspace_stand_in import Workspace

COMMAND = calls(call("write_file", path="a.txt", content="x"), call("run_command", command="echo so far; sleep 60"))
SLOW = {"text": "one two three four five six seven eight nine ten", "token_delay": 0.5}
ASKING = {"text": "x", "delay": 30}


@pytest.mark.parametrize("kind", ["command", "answer", "asking"])
async def test_stop_ends_an_agent_at_once(
    chat: ChatKit, model: ScriptedModel, rows: Rows, workspace: Workspace, kind: str
) -> None:
    step = {"command": COMMAND, "answer": SLOW, "asking": ASKING}[kind]
    await model.script(calls(coder()), step, {"text": "never"}, {"text": "never"})
    async with chat.open("threads.create", input=user_input("do task 3")) as events:
        async for event in events:
            if "thread" in event:
                thread = event["thread"]["id"]
            if kind == "command" and workspace.running and any(workspace.root.glob("*/a.txt")):
                break
            if event["type"] == "progress_update" and kind != "command" and "thinks" in event["text"]:
                await asyncio.sleep(0.2)  # of what the model sends
                break
            if kind == "command" and event["type"] == "progress_update" and "sleep" in event["text"]:
                await until_running(workspace)
                break
    stopped = time.monotonic()
    [run] = await until(lambda: rows("SELECT outcome, usage FROM runs WHERE outcome IS NOT NULL"))
    took = time.monotonic() - stopped
    assert run["outcome"] == "cancelled"
    assert took < 1, f"{took:.2f} s"
    await asyncio.sleep(0.2)
    assert workspace.running == 0, "its processes are gone"
    assert len(await model.requests()) == 2, "no model call follows"
    kinds = [row["kind"] for row in rows("SELECT kind FROM agent_steps ORDER BY seq")]
    assert kinds == (["task", "step", "output", "output", "end"] if kind == "command" else ["task", "end"])
    if kind == "command":
        [output] = rows("SELECT content FROM agent_steps WHERE kind = 'output' ORDER BY seq DESC LIMIT 1")
        assert "was stopped" in output["content"]["output"]
        assert "so far" in output["content"]["output"], "what it wrote until then"
    [shown] = [item for item in await chat.items(thread) if item["type"] == "workflow"]
    assert shown["workflow"]["summary"]["title"].endswith(", stopped")

    await model.reset()
    await model.script({"text": "Yes?"})
    await chat.say("go on", thread)
    messages: list[Any] = (await model.finished_requests())[-1]["body"]["messages"]
    check_pairs(messages)
    [told] = [message["content"] for message in messages if message["role"] == "tool"]
    assert told.startswith("The coder was stopped. What it did before:")


async def until_running(workspace: Workspace) -> None:
    async with asyncio.timeout(5):
        while not workspace.running:
            await asyncio.sleep(0.01)
    await asyncio.sleep(0.3)  # it has written
