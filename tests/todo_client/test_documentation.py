"""The Python of docs/python.md works as it is printed."""

import json
import re
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT
from tests.scripted_model import ScriptedModel
from tests.support.connectors import research, user_with_servers
from tests.support.resuming import TASKS
from tests.support.script import add_task, call, delete_tasks, says
from tests.support.stack import Services, Stack
from todo_client import Agent, EventType

pytestmark = pytest.mark.long

PAGE = (ROOT / "docs" / "python.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
[SERVER] = [block for block in BLOCKS if "FastMCP" in block]
PROGRAMS = [block for block in BLOCKS if block != SERVER]
BULK = (add_task(TASKS[0], also=TASKS[1:]), delete_tasks(*range(1, 12)), says("Done."))
EXPECTED: list[tuple[str, list[dict[str, Any]], str]] = [
    ("def show", [add_task("eggs"), says("Hello.")], "[add_task {'title': 'eggs'}]\nHello.\n"),
    ("RunFailed", [says("Nothing.")], "Nothing.\n"),
    ("intervene", [add_task("milk"), add_task("bread"), says("Both."), says("Milk and bread.")], ""),
    ("threading", [says("A plan.")], "completed\n"),
    ("input,", [*BULK], "[y/n] "),
    ("Session", [says("Soup."), says("Added."), says("Salad.")], "assistant_message Salad.\n"),
]
"""A word of each program, what the model does, and what is printed among other things."""


@pytest.fixture
def stack_name() -> str:
    return "no_sign_in"


def program_of(block: str, url: str) -> str:
    """A part of a coroutine is completed to a program."""
    block = block.replace("http://localhost:8000", url)
    if "asyncio.run(" in block:
        return block
    beginning = f"import asyncio\nfrom todo_client import Agent\n\nasync def main():\n    agent = Agent({url!r})\n"
    return f"{beginning}{textwrap.indent(block, '    ')}\nasyncio.run(main())\n"


def test_each_program_is_tested() -> None:
    assert [sum(word in block for block in PROGRAMS) for word, *_ in EXPECTED] == [1] * len(PROGRAMS)


@pytest.mark.parametrize(("word", "steps", "printed"), EXPECTED, ids=[word for word, *_ in EXPECTED])
async def test_program(
    word: str, steps: list[dict[str, Any]], printed: str, stack: Stack, model: ScriptedModel, tmp_path: Path
) -> None:
    await model.script(*steps)
    [block] = [block for block in PROGRAMS if word in block]
    file = tmp_path / "ask.py"
    file.write_text(program_of(block, stack.url))
    done = subprocess.run(  # noqa: ASYNC221 - the services are other processes
        [sys.executable, file], cwd=ROOT, env={"PYTHONPATH": str(ROOT)}, input="y\n", capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert printed in done.stdout
    assert len(await model.finished_requests()) >= len(steps), "it did all that it shows"


async def test_own_tool(stack: Stack, model: ScriptedModel, tmp_path: Path) -> None:
    services: Services = stack.services
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "flat.md").write_text("Plants: water on Fridays\nLandlord: 555-0100\n")
    (tmp_path / "notes.py").write_text(SERVER)
    [configuration] = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
    servers = json.loads(configuration)["mcpServers"]
    servers["notes"]["command"] = sys.executable
    async with user_with_servers(services, tmp_path / "mcp.json", servers, approved=["notes"]) as user:
        [read] = await research(user, model, call("mcp_notes__search_notes", words="landlord"))
    assert "Landlord: 555-0100" in read
    assert "Plants" not in read


def test_events_and_methods_are_documented() -> None:
    rows = "\n".join(line for line in PAGE.splitlines() if line.startswith("| `"))
    assert [kind for kind in EventType if f"`{kind}`" not in rows] == []
    methods = {name for name in vars(Agent) if not name.startswith("_")}
    assert [name for name in methods if f"{name}(" not in PAGE] == []
