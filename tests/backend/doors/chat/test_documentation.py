"""docs/frontends.md: its commands work as they stand there, and name what is tested."""

import asyncio
import json
import os

import pytest

from tests.backend.doors.chat.frontends import FRONTENDS
from tests.backend.doors.runs.published import schema
from tests.chatkit_client import ChatKit
from tests.conftest import ROOT

TEXT = (ROOT / "docs/frontends.md").read_text()
COMMANDS = [line.strip() for line in TEXT.splitlines() if line.startswith("    curl ")]
ADDRESS = "localhost:8000"
LAST = {"/chat": '"status":"completed"', "/chat/stream": "data: [DONE]", "/chatkit": '"type": "message_complete"'}


def path_of(command: str) -> str:
    return command.partition(ADDRESS)[2].split()[0]


def test_there_is_a_command_for_each_path_and_the_clients_are_those_that_are_tested() -> None:
    published = {path for path in schema()["paths"] if not path.startswith("/chats")}
    assert {path_of(command) for command in COMMANDS} == {*published, "/chatkit"}
    locked = json.loads((FRONTENDS / "package.json").read_text())["dependencies"]
    assert f"`ai` {locked['ai'].partition('.')[0]} " in TEXT
    assert f"`assistant-stream` {locked['assistant-stream'].rpartition('.')[0]}" in TEXT


def test_the_lock_holds_names_and_hashes_only() -> None:
    lock = (FRONTENDS / "package-lock.json").read_text()
    assert "://" not in lock
    assert lock.count('"integrity": "sha512-') > 10


@pytest.mark.parametrize("command", COMMANDS, ids=path_of)
async def test_a_documented_command_works(command: str, chat: ChatKit) -> None:
    process = await asyncio.create_subprocess_shell(
        command.replace(ADDRESS, chat.base_url), stdout=asyncio.subprocess.PIPE, env=os.environ
    )
    said, _ = await process.communicate()
    assert LAST[path_of(command)] in said.decode()
