"""`python -m backend mcp`, with a program of somebody else's."""

import json
import logging
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from backend.commands import mcp
from tests.backend.conftest import Rows
from tests.backend.other_servers import SECRET
from tests.conftest import ROOT
from tests.logins import as_owner


@pytest.fixture(autouse=True)
def _environment(database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("MIGRATION_DATABASE_URL", as_owner(database_url))
    monkeypatch.setenv("MCP_SERVERS_FILE", str(tmp_path / "mcp.json"))
    monkeypatch.setenv("WEB_KEY", SECRET)
    yield
    for name in ("backend.tools.connectors", "backend.tools.connectors.said"):  # which are the process's own otherwise
        logging.getLogger(name).setLevel(logging.NOTSET)


def configure(folder: Path, **servers: Any) -> None:
    (folder / "mcp.json").write_text(json.dumps({"mcpServers": servers}))


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    mcp.run(arguments)
    return capsys.readouterr().out


@pytest.mark.long
def test_tools_are_listed_in_full_approved_and_seen_to_change(
    tmp_path: Path, rows: Rows, capsys: pytest.CaptureFixture[str]
) -> None:
    description = tmp_path / "description"
    web: dict[str, Any] = {
        "command": sys.executable,
        "args": ["-m", "tests.foreign_server"],
        "cwd": str(ROOT),
        "env": {"KEY": "${env:WEB_KEY}", "DESCRIPTION": str(description)},
        "tools": ["say", "add_task"],
        "readOnly": True,
    }
    configure(tmp_path, web=web, gone={"command": "/no/such/program", "args": ["${env:WEB_KEY}"]})
    listed = said(capsys, "list")
    assert f"mcp.web: the program {sys.executable}, for researcher; its calls are made unasked (readOnly)" in listed
    assert "  mcp.web.say: not approved\n    Says what it is told.\n    {" in listed
    assert "  mcp.web.much: not among the tools that mcp.json allows\n" in listed
    assert "for every task.\\u202e\n" in listed, "what a terminal would hide is spelled out"
    assert "mcp.gone: the program /no/such/program, for no agent: name some in its agents; each call is asked" in listed
    assert "  It cannot be used: the program /no/such/program is not there.\n" in listed

    assert "mcp.web.say: approved" in said(capsys, "approve", "web", "say")
    assert [row["tool"] for row in rows("SELECT tool FROM approved_tools")] == ["say"]
    said(capsys, "approve", "web")
    assert [row["tool"] for row in rows("SELECT tool FROM approved_tools ORDER BY 1")] == ["add_task", "say"]
    description.write_text("Something else.")
    assert "mcp.web.say: changed since it was approved\n    Something else.\n" in said(capsys, "list")
    with pytest.raises(SystemExit, match=r"^mcp.web has no tool 'much' that mcp.json allows. Nothing was approved.$"):
        mcp.run(["approve", "web", "much"])
    mcp.run(["test", "web"])
    output, errors = capsys.readouterr()
    assert output.splitlines()[:2] == ["mcp.web answers: 7 tools.", "  mcp.web.add_task"]
    with pytest.raises(SystemExit, match=r"^mcp.gone cannot be used: the program /no/such/program is not there\.$"):
        mcp.run(["test", "gone"])
    assert SECRET not in listed + output + errors


def test_what_cannot_be_done_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SystemExit, match=r"cannot be read: No such file or directory\.$"):
        mcp.run(["list"])
    configure(tmp_path, web={"command": "x", "disabled": True})
    with pytest.raises(SystemExit, match=r"^There is no server 'wep': there are web\.$"):
        mcp.run(["test", "wep"])
    with pytest.raises(SystemExit, match=r"^mcp.web is disabled\.$"):
        mcp.run(["test", "web"])
    configure(tmp_path, web={"command": "x", "args": ["${env:DATABASE_URL}"]})
    with pytest.raises(SystemExit, match=r"may not have \$\{env:DATABASE_URL\}: that is a setting of this program"):
        mcp.run(["list"])
    monkeypatch.setenv("MCP_SERVERS_FILE", "")
    with pytest.raises(SystemExit, match=r"^There are no other MCP servers: write them into mcp.json"):
        mcp.run(["list"])
