"""docs/runs.md: its commands work as they stand there, and none is missing."""

import asyncio
import json
import os
import re
from collections.abc import AsyncIterator

import pytest

from tests.backend.conftest import Backend, Rows
from tests.backend.consent import calls, deleting, with_tasks
from tests.backend.doors.runs.published import schema
from tests.backend.slow_turns import SLOW
from tests.chatkit_client import ChatKit
from tests.conftest import ROOT
from tests.runs_client import SHAPES, Runs, id_of
from tests.scripted_model import ScriptedModel
from tests.waiting import until

pytestmark = pytest.mark.long

TEXT = (ROOT / "docs/runs.md").read_text()
COMMANDS = [line.strip() for line in TEXT.splitlines() if line.startswith("    curl ")]
ADDRESS = "localhost:8000"
STREAMED = ("/interactions", "/events", "/edit")


def operation(command: str) -> tuple[str, str]:
    """The method and the path of the schema that a command asks for."""
    [path] = re.findall(rf"{ADDRESS}([^ '?]*)", command)
    method = "post" if " -d " in command or "-sX POST" in command else "get"
    return method, path.replace("groceries", "{chat_id}").replace("$RUN", "{interaction_id}")


def test_there_is_a_command_for_each_operation() -> None:
    operations = {(method, path) for path, methods in schema()["paths"].items() for method in methods}
    published = {(method, path) for method, path in operations if path.startswith("/chats")}
    assert {operation(command) for command in COMMANDS} == published


def test_every_event_is_told() -> None:
    rows = "\n".join(line.split("|")[1] for line in TEXT.splitlines() if line.startswith("| `"))
    for name in schema()["components"]["schemas"]["Event"]["properties"]["event"]["enum"]:
        assert f"`{name}`" in rows
        assert name in SHAPES


@pytest.fixture
async def asking(backend: Backend) -> AsyncIterator[ChatKit]:
    async with backend(approvals=("delete_task",)) as chat:
        yield chat


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: " ".join(operation(command)))
async def test_a_documented_command_works(command: str, asking: ChatKit, model: ScriptedModel, rows: Rows) -> None:
    async with Runs(asking.base_url) as runs:
        known = {"RUN": id_of(await runs.say("groceries", "hello"))}
        if "$APPROVAL" in command:
            await with_tasks(asking, model, 1)
            await model.script(calls(deleting(1)), {"text": "Done."})
            known = await begun(runs, "approval_required")
            await until(lambda: rows("SELECT 1 FROM runs WHERE status = 'waiting'"))
        elif "/cancel" in command or "/messages" in command:
            await model.script(SLOW)
            known = await begun(runs, "turn_start")
        said = await run(command.replace(ADDRESS, asking.base_url), known)
    path = operation(command)[1]
    if path.endswith(STREAMED):
        assert said.rstrip().splitlines()[-2] == "event: interaction_complete"
        assert '"status": "COMPLETED"' in said
    elif path.endswith("/log"):
        assert [json.loads(line)["event"] for line in said.splitlines()][:2] == ["session_start", "user_message"]
    else:
        assert "error" not in json.loads(said)
    if "/approve" in command:
        await until(lambda: not rows("SELECT 1 FROM tasks"))


async def begun(runs: Runs, until_event: str) -> dict[str, str]:
    known: dict[str, str] = {}
    async with runs.interact("groceries", "go on") as events:
        async for event in events:
            known |= {"RUN": event.data["interaction_id"]} if "interaction_id" in event.data else {}
            known |= {"APPROVAL": event.data["approval_id"]} if "approval_id" in event.data else {}
            if event.name == until_event:
                break
    return known


async def run(command: str, known: dict[str, str]) -> str:
    """What the command prints, in a shell that knows these variables."""
    environment = {**os.environ, **known, "no_proxy": "*"}
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_shell(f"{command} --fail-with-body", stdout=pipe, env=environment)
    said, _ = await asyncio.wait_for(process.communicate(), 30)
    assert process.returncode == 0, said
    return said.decode()
