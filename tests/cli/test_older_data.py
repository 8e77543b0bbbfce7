"""A data directory of version 0.1.0: `./todo up` converts its conversations, after it has written a dump."""

import gzip
import http.client
import json
import os
import signal
from pathlib import Path
from typing import Any

import psycopg
import pytest

from cli.database.postgres import Cluster
from tests.conftest import ROOT, find_free_port

pytestmark = pytest.mark.long

VERSION_0_1_0 = ROOT / "tests" / "migrations" / "data" / "version-0.1.0.sql.gz"


@pytest.fixture
def old_data(shared_dir: Path) -> Path:
    """Made by the version's own migrations; the user `ben` is the one without a sign-in."""
    sql = gzip.decompress(VERSION_0_1_0.read_bytes()).replace(b"'ben'", b"'local'")
    with Cluster.start(shared_dir, durable=False) as cluster, psycopg.connect(cluster.owner_url) as connection:
        connection.execute(sql)
    return shared_dir


def get(port: int, path: str) -> Any:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request("GET", path)
    body = connection.getresponse().read()
    connection.close()
    return json.loads(body)


def test_up(start, old_data: Path) -> None:
    def run() -> tuple[list[str], Any]:
        port = find_free_port()
        arguments = ["--port", str(port), "--mcp-port", str(find_free_port()), "--data-dir", str(old_data)]
        variables = {name: value for name, value in os.environ.items() if name != "DATABASE_URL"}
        variables |= {"LLM_PROVIDER": "offline", "AGENTS": "off", "NO_COLOR": "1"}
        process = start("-m", "cli", "up", *arguments, env=variables)
        lines: list[str] = []
        for line in process.stdout:
            lines.append(line.rstrip())
            if line.startswith("  page "):
                break
        chats = get(port, "/chats")
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0, lines
        return lines, chats

    lines, chats = run()
    [dump] = old_data.glob("todo-0.1.0-*.dump")
    assert f"The database as it was is in {dump}." in lines
    assert [line for line in lines if line.startswith("Converted 14 conversations, 236 messages")]
    assert len(chats["chats"]) == 1
    again, unchanged = run()
    assert not [line for line in again if "Converted" in line or "dump" in line]
    assert unchanged == chats
    assert len([*old_data.glob("todo-0.1.0-*.dump")]) == 1
