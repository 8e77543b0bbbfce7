"""Other MCP servers that send too much: each is ended with a sentence, the process stays small, and the loop free."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests import hostile_server
from tests.conftest import ROOT, find_free_port
from tests.foreign_server import create_server
from tests.hostile_server import GREETINGS, LISTS, OVER_HTTP, OVER_PIPES, RESULTS
from tests.scripted_model import ScriptedModel
from tests.serving import serve
from tests.support.connectors import list_researcher_tools, user_with_servers
from tests.support.stack import Stack

pytestmark = pytest.mark.long(seconds=30)

Json = dict[str, Any]
MAX_GROWN = 50  # megabytes, of the process
MAX_HELD = 100  # milliseconds of processor time: five times what is meant, as a busy machine is slow
TOO_MUCH = "sent too much"
SAID = {
    "errors": "1 tools, 1 parts",
    "icons": "1 tools, 1 parts",
    "listening": "1 tools, 1 parts",
    "2,000 tools": "lists more than 500 tools",
    "pages without end": "on more than 50 pages",
    "many parts": "sent a result of more than 500 parts",
    "gzip": "compresses its answers",
    "headers": "",
    "interim answers": "did not answer within",
}
"""What is said of servers other than `TOO_MUCH`."""
SLOW = ("interim answers",)  # which the HTTP library reads without an end, and without growing


def name(kind: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", kind)[:20]


@pytest.fixture
def port() -> Iterator[int]:
    """The port of a server whose paths are kinds of hostile behaviour."""
    number = find_free_port()
    process = subprocess.Popen([sys.executable, "-m", "tests.hostile_server", str(number)], cwd=ROOT)
    try:
        yield number
    finally:
        process.kill()
        process.wait()


def use(file: Path, servers: Json) -> dict[str, Json]:
    """Uses each server in one process; returns what that says of each."""
    file.write_text(json.dumps({"mcpServers": servers}))
    command = [sys.executable, "-m", "tests.support.connector_probe", str(file)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=240, check=True)
    return {answer["name"]: answer for answer in map(json.loads, done.stdout.splitlines())}


def check(kinds: Sequence[str], answers: dict[str, Json]) -> None:
    assert answers["good"]["said"] == "1 tools, 1 parts"
    found = {kind: answers[name(kind)] for kind in kinds}
    assert {kind: one["said"] for kind, one in found.items() if SAID.get(kind, TOO_MUCH) not in one["said"]} == {}
    assert {kind: one["grown"] for kind, one in found.items() if one["grown"] >= MAX_GROWN} == {}
    held = {kind: one["held"] for kind, one in found.items() if kind not in SLOW}
    assert {kind: longest for kind, longest in held.items() if longest >= MAX_HELD} == {}


def over_http(port: int, kind: str) -> Json:
    timeout = 5 if kind in SLOW else 60  # only of these, the timeout is what ends them
    return {"url": f"http://127.0.0.1:{port}/{kind.replace(' ', '%20')}", "readOnly": True, "timeout": timeout}


def test_servers(port: int, tmp_path: Path) -> None:
    kinds = [*LISTS, *RESULTS, *GREETINGS, *OVER_HTTP]
    servers = {name(kind): over_http(port, kind) for kind in ["good", *kinds]}
    check(kinds, use(tmp_path / "mcp.json", servers))


def test_programs(tmp_path: Path) -> None:
    kinds = [*LISTS, *RESULTS, *GREETINGS, *OVER_PIPES]
    program = {"command": sys.executable, "cwd": str(ROOT), "readOnly": True, "timeout": 30}
    servers = {name(kind): {**program, "args": ["-m", hostile_server.__name__, kind]} for kind in ["good", *kinds]}
    check(kinds, use(tmp_path / "mcp.json", servers))


async def test_other_servers_go_on(
    stack: Stack, model: ScriptedModel, port: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with serve(create_server().http_app()) as url:
        servers = {"long": over_http(port, "long description"), "web": {"url": f"{url}/mcp", "readOnly": True}}
        async with user_with_servers(stack.services, tmp_path / "mcp.json", servers, approved=["web"]) as user:
            assert "mcp_web__say" in await list_researcher_tools(user, model)
            unusable = (await user.runs.ready())["unusable"]
    reason = "sent too much: a list of tools can have 1 MB, and the result of a call 2 MB"
    assert unusable == {"mcp.long": reason}
    assert f"mcp.long is left out: {reason}" in caplog.messages
