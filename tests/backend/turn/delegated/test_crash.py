"""The backend is killed in the middle of an agent's work: nothing is unpaired, and how far it came is known."""

import asyncio
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.backend.agents_at_work import COMMAND, coder, sleeping
from tests.backend.completions import check_pairs
from tests.backend.conftest import Rows
from tests.backend.consent import call, calls
from tests.chatkit_client import ChatKit, user_input
from tests.processes import ServiceProcess
from tests.scripted_model import ScriptedModel
from tests.tokens import MCP_TOKEN_SECRET
from tests.waiting import until
from tests.workspace_service import WORKSPACE_TOKEN_SECRET

pytestmark = pytest.mark.long


@pytest.fixture
def process(database_url: str, mcp_url: str, workspace: tuple[str, Path], model: ScriptedModel, tmp_path: Path) -> Any:
    given = {
        "DATABASE_URL": database_url,
        "MCP_INTERNAL_URL": mcp_url,
        "MCP_TOKEN_SECRET": MCP_TOKEN_SECRET,
        "WORKSPACE_URL": workspace[0],
        "WORKSPACE_TOKEN_SECRET": WORKSPACE_TOKEN_SECRET,
        "APPROVALS": "bulk",
        "LLM_PROVIDER": "offline",
        "LLM_BASE_URL": model.openai_base_url,
        "HEARTBEAT_SECONDS": "0.1",
        "LEASE_SECONDS": "1",
    }
    return ServiceProcess("backend", "BACKEND_PORT", tmp_path / "log", **given)


async def test_what_was_recorded_is_told_when_the_process_died(
    process: ServiceProcess, model: ScriptedModel, rows: Rows, workspace: tuple[str, Path]
) -> None:
    await model.script(
        calls(coder("sleep")),
        calls(call("write_file", path="a.txt", content="x"), call("run_command", command=COMMAND)),
    )
    process.start()
    await asyncio.to_thread(process.wait_until_ready)
    thread = ""
    async with ChatKit(process.url) as chat, chat.open("threads.create", input=user_input("do it")) as events:
        async for event in events:
            thread = event.get("thread", {}).get("id", thread)
            if event["type"] == "progress_update" and "sleep" in event["text"]:
                break
        await until(lambda: [*workspace[1].glob(f"*/{thread}/begun")])
        process.end(signal.SIGKILL)
    await until(lambda: not sleeping())
    assert [row["kind"] for row in rows("SELECT kind FROM agent_steps ORDER BY seq")] == ["task", "step", "output"]

    process.start()
    await asyncio.to_thread(process.wait_until_ready)
    try:
        async with ChatKit(process.url) as chat:
            [shown] = [item for item in await chat.items(thread) if item["type"] == "workflow"]
            assert shown["workflow"]["summary"]["title"] == "Coder: as far as it came"
            assert [task["title"] for task in shown["workflow"]["tasks"]][1] == "Wrote a.txt"
            assert "loading" not in str(shown)
            await model.script({"text": "I look."})
            assert (await chat.say("what happened?", thread)).error is None
    finally:
        process.end()
    messages = (await model.finished_requests())[-1]["body"]["messages"]
    check_pairs(messages)
    [told] = [message["content"] for message in messages if message["role"] == "tool"]
    assert told.startswith("The outcome of this call is unknown")
    assert "- Writing a.txt: " in told
    assert "sleep 54321: outcome unknown" in told
