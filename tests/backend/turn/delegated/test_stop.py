"""Stop in the middle of an agent's work: nothing follows, nothing is left unpaired, and what it did is known."""

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest

from tests.backend.agents_at_work import COMMAND, coder, sleeping
from tests.backend.completions import check_pairs
from tests.backend.conftest import Rows
from tests.backend.consent import call, calls
from tests.chatkit_client import ChatKit, user_input
from tests.scripted_model import ScriptedModel
from tests.waiting import until

STEPS: dict[str, dict[str, Any]] = {
    "command": calls(call("write_file", path="a.txt", content="x"), call("run_command", command=COMMAND)),
    "answer": {"text": "one two three four five six seven eight nine ten", "token_delay": 0.5},
    "asking": {"text": "x", "delay": 30},
}


@pytest.mark.parametrize("kind", STEPS)
async def test_stop_ends_an_agent_at_once(
    chat: ChatKit, model: ScriptedModel, rows: Rows, workspace: tuple[str, Path], kind: str
) -> None:
    await model.script(calls(coder()), STEPS[kind], {"text": "never"}, {"text": "never"})
    thread = ""
    async with chat.open("threads.create", input=user_input("do task 3")) as events:
        async for event in events:
            thread = event.get("thread", {}).get("id", thread)
            if event["type"] == "progress_update" and (
                "sleep" in event["text"] if kind == "command" else "thinks" in event["text"]
            ):
                break
        if kind == "command":
            while not [*workspace[1].glob(f"*/{thread}/begun")]:
                await asyncio.sleep(0.01)
        else:
            await model.received_requests(2)
    stopped = time.monotonic()
    [run] = await until(lambda: rows("SELECT outcome FROM runs WHERE outcome IS NOT NULL"))
    assert time.monotonic() - stopped < 5
    assert run["outcome"] == "cancelled"
    assert sleeping() == [], "what it ran is gone"
    assert len(await model.finished_requests()) == 2, "no model call follows"
    kinds = [row["kind"] for row in rows("SELECT kind FROM agent_steps ORDER BY seq")]
    assert kinds == (["task", "step", "output", "output", "end"] if kind == "command" else ["task", "end"])
    if kind == "command":
        [step] = rows("SELECT content, details FROM agent_steps WHERE kind = 'output' ORDER BY seq DESC LIMIT 1")
        assert step["details"]["stdout"] == "so far\n"
        assert step["details"]["stopped"] is True
    [shown] = [item for item in await chat.items(thread) if item["type"] == "workflow"]
    assert shown["workflow"]["summary"]["title"].endswith(", stopped")

    await model.reset()
    await model.script({"text": "Yes?"})
    await chat.say("go on", thread)
    messages: list[Any] = (await model.finished_requests())[-1]["body"]["messages"]
    check_pairs(messages)
    [told] = [message["content"] for message in messages if message["role"] == "tool"]
    assert told.startswith("The coder was stopped. What it did before:")
