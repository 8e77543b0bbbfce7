"""Other MCP servers that are programs of this machine: they die, are missing, and write all that they know."""

import json
import logging
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT
from tests.scripted_model import ScriptedModel
from tests.support.commands import todo
from tests.support.connectors import research, user_with_servers
from tests.support.script import call
from tests.support.stack import Stack
from tests.waiting import until

pytestmark = pytest.mark.long

Json = dict[str, Any]
SECRET = "a-value-that-nobody-sees"


def program(*, environment: dict[str, str], **more: Any) -> Json:
    return {
        "command": sys.executable,
        "args": ["-m", "tests.foreign_server"],
        "cwd": str(ROOT),
        "env": environment,
        "agents": ["researcher"],
        "timeout": 120,  # a busy machine takes long to start it
        **more,
    }


def pid_in(output: str) -> int:
    return int(output.rpartition(" ")[2])


async def test_program_that_dies_is_started_again_and_only_what_reads_is_repeated(
    stack: Stack, model: ScriptedModel, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    calls_file = tmp_path / "calls"
    environment = {"CALLS": str(calls_file)}
    servers = {
        "gone": {"command": "/no/such/program", "readOnly": True},
        "web": program(environment=environment, readOnly=True),
        "notes": program(environment=environment),
    }

    def web(text: str) -> Json:
        return call("mcp_web__say", text=text)

    def notes(text: str) -> Json:
        return call("mcp_notes__say", text=text)

    file = tmp_path / "mcp.json"
    async with user_with_servers(stack.services, file, servers, approved=["web", "notes"]) as user:
        assert "mcp.gone cannot be used: the program /no/such/program is not there" in caplog.messages
        first, again = await research(user, model, web("hi"), web("die once"))
        assert calls_file.read_text().splitlines() == ["hi", "die once", "die once"]
        assert "die once from" in again
        os.kill(pid_in(again), signal.SIGKILL)
        third, lost, fourth = await research(user, model, web("hi"), notes("die"), notes("hi"))
        assert len({pid_in(output) for output in (first, again, third)}) == 3
        assert "mcp.notes.say went away in the middle of the call. Whether the call was carried out is not" in lost
        os.kill(pid_in(fourth), signal.SIGKILL)
        [after] = await research(user, model, notes("only once"))
        assert "only once from" in after, "it was dead before the call, which is therefore made"
    assert [calls_file.read_text().splitlines().count(text) for text in ("die", "only once")] == [1, 1]


async def test_secrets_are_in_no_log_and_no_output(
    stack: Stack,
    model: ScriptedModel,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("A_SECRET_OF_THE_BACKEND", "which-no-child-gets")
    monkeypatch.setenv("WEB_KEY", SECRET)
    servers = {"web": program(environment={"KEY": "Bearer ${env:WEB_KEY}"}, readOnly=True)}
    file = tmp_path / "mcp.json"
    async with user_with_servers(stack.services, file, servers, approved=["web"]) as user:
        environment, failed = await research(user, model, call("mcp_web__environment"), call("mcp_web__fail"))
    assert "KEY=Bearer ${env:WEB_KEY}" in environment
    assert {line.partition("=")[0] for line in environment.splitlines()[1:]} <= {
        *("HOME", "KEY", "LC_CTYPE", "LOGNAME", "PATH", "SHELL", "TERM", "USER")
    }
    assert "with Bearer ${env:WEB_KEY}" in failed
    await until(lambda: "mcp.web says: KEY=Bearer ${env:WEB_KEY}" in caplog.messages)  # a thread logs it
    printed = capfd.readouterr()
    for secret in (SECRET, "which-no-child-gets"):
        assert secret not in environment + failed + caplog.text + printed.out + printed.err
    assert "KEY" not in printed.out, "what it writes goes to the log alone"


@pytest.mark.parametrize(
    ("server", "sentence"),
    [
        ({"command": "false"}, "cannot be used: the program false ended at once"),
        ({"command": "cat"}, "cannot be used: the program cat does not answer as an MCP server"),
        ({"command": "sleep", "args": ["60"], "timeout": 1}, "did not answer within 1 seconds"),
    ],
)
def test_program_that_is_no_mcp_server(server: Json, sentence: str, tmp_path: Path) -> None:
    file = tmp_path / "mcp.json"
    file.write_text(json.dumps({"mcpServers": {"web": server}}))
    done = todo("mcp", "test", "web", MCP_SERVERS_FILE=str(file))
    assert (done.returncode, done.stderr) == (1, f"error: mcp.web {sentence}.\n")
