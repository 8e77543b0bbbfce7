"""The backend is killed in the middle of an agent's work: nothing is unpaired or done twice, what is known is told."""

import asyncio
import signal
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.backend.agents_at_work import COMMAND, coder, sleeping
from tests.backend.completions import check_pairs
from tests.backend.conftest import Rows
from tests.backend.consent import call, calls, cards, decide
from tests.chatkit_client import ChatKit, user_input
from tests.logins import as_admin
from tests.processes import ServiceProcess
from tests.scripted_model import ScriptedModel
from tests.tokens import MCP_TOKEN_SECRET
from tests.waiting import until
from tests.workspace_service import WORKSPACE_TOKEN_SECRET

pytestmark = pytest.mark.long(seconds=15)


@pytest.fixture
def process(database_url: str, mcp_url: str, workspace: tuple[str, Path], model: ScriptedModel, tmp_path: Path) -> Any:
    given = {
        "DATABASE_URL": database_url,
        "MCP_INTERNAL_URL": mcp_url,
        "MCP_TOKEN_SECRET": MCP_TOKEN_SECRET,
        "WORKSPACE_URL": workspace[0],
        "WORKSPACE_TOKEN_SECRET": WORKSPACE_TOKEN_SECRET,
        "APPROVALS": "bulk,run_python",
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


def python(code: str) -> dict[str, Any]:
    return calls(call("run_python", code=code))


async def test_an_agent_that_asks_outlives_its_process_and_does_nothing_twice(
    process: ServiceProcess, model: ScriptedModel, rows: Rows, workspace: tuple[str, Path], database_url: str
) -> None:
    """Of three that wait one goes on in another process, which is killed in the second's call, before the third's."""
    once = "open('done', 'a').write('x'); "
    slow = once + "import time; open('begun', 'w'); time.sleep(54321)"
    await model.script(calls(coder()), python(once), calls(coder()), python(slow), calls(coder()), python(once))
    process.start()
    await asyncio.to_thread(process.wait_until_ready)
    async with ChatKit(process.url) as chat:
        asked = [await chat.say("do it") for _ in range(3)]
    process.end(signal.SIGKILL)
    first, second, third = (answer.thread_id for answer in asked)
    cards_of = [cards(answer)[0] for answer in asked]

    process.start()
    await asyncio.to_thread(process.wait_until_ready)
    async with ChatKit(process.url) as chat:
        await model.script({"text": "Done."}, {"text": "It is done."})
        rest = await decide(chat, cards_of[0], approve=True)
        assert (rest.error, rest.text) == (None, "It is done.")
        running = asyncio.create_task(decide(chat, cards_of[1], approve=True))
        await until(lambda: [*workspace[1].glob(f"*/{second}/begun")])
        with psycopg.connect(as_admin(database_url)) as holding:
            holding.execute("LOCK TABLE agent_steps IN ACCESS EXCLUSIVE MODE")
            deciding = asyncio.create_task(decide(chat, cards_of[2], approve=True))
            await until(lambda: rows("SELECT 1 FROM runs WHERE conversation_id = %s AND status = 'running'", third))
            process.end(signal.SIGKILL)
        await asyncio.gather(running, deciding, return_exceptions=True)

    process.start()
    await asyncio.to_thread(process.wait_until_ready)
    done = {path.parent.name: path.read_text() for path in workspace[1].glob("*/*/done")}
    assert [done.get(thread) for thread in (first, second, third)] == ["x", "x", None]
    try:
        async with ChatKit(process.url) as chat:
            for card in cards_of:
                assert "decided already" in ((await decide(chat, card, approve=True)).error or {})["message"]
            for thread in (second, third):
                await model.reset()
                await model.script({"text": "I look."})
                assert (await chat.say("what happened?", thread)).error is None
                messages = (await model.finished_requests())[-1]["body"]["messages"]
                check_pairs(messages)
                [told] = [message["content"] for message in messages if message["role"] == "tool"]
                assert "Running Python: outcome unknown" in told
    finally:
        process.end()
    outcomes = rows("SELECT outcome FROM runs ORDER BY started_at LIMIT 3")
    assert [row["outcome"] for row in outcomes] == ["completed", "interrupted", "interrupted"]
