"""Servers that are programs of this machine: real processes, which die, are missing, and tell all they know."""

import asyncio
import logging
import os
from pathlib import Path

import pytest

from backend.tools.connectors.link import Link
from backend.tools.connectors.server import Server
from common.database import Database
from tests.backend.other_servers import SECRET, Connecting, approve, by_name, call, lines, program

pytestmark = pytest.mark.long


def runs(process: int) -> bool:
    return Path(f"/proc/{process}").exists()


def pid(text: str) -> int:
    return int(text.rpartition(" ")[2])


async def test_a_program_that_dies_comes_back_and_only_what_reads_is_repeated(
    connecting: Connecting, owner: Database, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    told = {"CALLS": str(tmp_path / "calls")}
    reading, writing = program(environment=told), program("notes", environment=told, read_only=False)
    missing = Server("gone", "/no/such/program", None, agents=frozenset({"researcher"}))
    await approve(owner, reading)
    await approve(owner, writing)
    connectors = connecting(missing, reading, writing)
    assert "mcp.gone cannot be used: the program /no/such/program is not there" in caplog.messages
    tools = await by_name(connectors)
    assert len(tools) == 14, "the others work"
    first = pid(await call(tools["mcp_web__say"], text="hi"))

    assert "die once from" in await call(tools["mcp_web__say"], text="die once")
    assert lines(tmp_path / "calls") == ["hi", "die once", "die once"]
    os.kill(pid(await call(tools["mcp_web__say"], text="hi")), 9)
    assert pid(await call(tools["mcp_web__say"], text="hi")) != first

    lost = await call(tools["mcp_notes__say"], text="die")
    assert lost.startswith("mcp.notes.say went away in the middle of the call. Whether the call was carried out is not")
    assert lines(tmp_path / "calls").count("die") == 1
    killed = pid(await call(tools["mcp_notes__say"], text="hi"))
    os.kill(killed, 9)
    again = await call(tools["mcp_notes__say"], text="only once")
    assert "only once from" in again, "it was dead before the call, which is therefore made"
    assert lines(tmp_path / "calls").count("only once") == 1


async def test_what_a_program_knows_is_in_no_log_and_no_answer(
    connecting: Connecting, owner: Database, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    os.environ["A_SECRET_OF_OURS"] = "which-no-child-is-given"
    server = program()
    await approve(owner, server)
    connectors = connecting(server)
    tools = await by_name(connectors)
    try:
        answer = await call(tools["mcp_web__environment"])
    finally:
        del os.environ["A_SECRET_OF_OURS"]
    assert "KEY=Bearer ${env:WEB_KEY}" in answer
    assert "which-no-child-is-given" not in answer
    assert {line.partition("=")[0] for line in answer.splitlines()[1:]} <= {
        *("HOME", "KEY", "LC_CTYPE", "LOGNAME", "PATH", "SHELL", "TERM", "USER")
    }
    assert "with Bearer ${env:WEB_KEY}" in await call(tools["mcp_web__fail"])
    await connectors.close()
    assert any(message == "mcp.web says: KEY=Bearer ${env:WEB_KEY}" for message in caplog.messages)
    assert SECRET not in answer + caplog.text
    printed = capfd.readouterr()
    assert SECRET not in printed.out + printed.err
    assert "KEY" not in printed.out, "what it says goes to the log, and to nobody"


async def test_a_program_is_started_on_first_use_and_ended_when_it_was_not_used_for_a_while() -> None:
    link = Link(program(), idle_seconds=0.5)
    assert not link.is_open
    first = pid(str((await link.call("say", {"text": "hi"}, again=True)).structured_content["result"]))  # pyright: ignore[reportOptionalSubscript]
    assert link.is_open
    async with asyncio.timeout(10):
        while link.is_open or runs(first):
            await asyncio.sleep(0.05)
    slow = await link.call("wait", {"seconds": 1.5}, again=True)
    assert not slow.is_error, "what is under way is use"
    await link.close()


@pytest.mark.parametrize(
    ("command", "arguments", "sentence"),
    [
        ("false", (), "cannot be used: the program false ended at once"),
        ("cat", (), "cannot be used: the program cat does not answer as an MCP server"),
        ("sleep", ("60",), "did not answer within 1 seconds"),
    ],
)
async def test_a_program_that_is_no_mcp_server(command: str, arguments: tuple[str, ...], sentence: str) -> None:
    link = Link(Server("web", command, None, arguments, timeout=1))
    with pytest.raises(Exception, match=sentence):
        await link.tools()
    await link.close()
