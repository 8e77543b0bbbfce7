"""The workspace is killed in the middle of a command: the turn says so, and nothing is unpaired."""

import asyncio
import signal
from typing import Any

import pytest

from tests.backend.agents_at_work import COMMAND, coder, work
from tests.backend.completions import check_pairs
from tests.backend.conftest import Backend, Rows
from tests.backend.consent import call, calls
from tests.scripted_model import ScriptedModel
from tests.waiting import until
from tests.workspace_service import served_workspace

pytestmark = pytest.mark.long


async def test_a_workspace_that_dies_is_told_of(
    backend: Backend, with_agents: dict[str, Any], model: ScriptedModel, rows: Rows
) -> None:
    with served_workspace() as (service, directory):
        await model.script(calls(coder()), calls(call("run_command", command=COMMAND)), {"text": "never"})
        async with backend(**with_agents | {"workspace_url": f"{service.url}/mcp"}, mcp_resend_seconds=0.3) as chat:
            answering = asyncio.create_task(chat.say("do it"))
            await until(lambda: [*directory.glob("*/thr_*/begun")] or answering.done())
            service.end(signal.SIGKILL)
            answer = await answering
            assert answer.error is not None
            assert "workspace cannot be reached" in answer.error["message"]
            assert work(answer)["summary"]["title"] == "Coder: 0 steps, failed"
            assert [row["kind"] for row in rows("SELECT kind FROM agent_steps ORDER BY seq")][-2:] == ["output", "end"]
            await model.reset()
            await model.script({"text": "I see."})
            await chat.say("and?", answer.thread_id)
            messages = (await model.finished_requests())[-1]["body"]["messages"]
            check_pairs(messages)
            assert "could not finish" in next(one["content"] for one in messages if one["role"] == "tool")
        service.start()
