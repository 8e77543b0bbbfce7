"""Data directories of older versions: `./todo up` upgrades them, or says why it does not."""

import http.client
import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from cli.database.postgres import Cluster
from tests.conftest import find_free_port
from tests.migrations.older import VERSION_0_1_0, create_tables, read_version_0_2_0
from tests.waiting import WAIT_SECONDS

pytestmark = pytest.mark.long


@pytest.fixture
def up(start, shared_dir: Path):
    """Starts `./todo up` on a database that these statements create."""

    def run(statements: str, port: int) -> Any:
        with Cluster.start(shared_dir, durable=False) as cluster:
            create_tables(cluster.owner_url, statements)
        arguments = ["--port", str(port), "--mcp-port", str(find_free_port()), "--data-dir", str(shared_dir)]
        variables = {name: value for name, value in os.environ.items() if name != "DATABASE_URL"}
        variables |= {"LLM_PROVIDER": "offline", "AGENTS": "off", "NO_COLOR": "1"}
        return start("-m", "cli", "up", *arguments, env=variables)

    return run


def get(port: int, path: str) -> Any:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=WAIT_SECONDS)
    connection.request("GET", path)
    body = connection.getresponse().read()
    connection.close()
    return json.loads(body)


def test_version_0_2_0_is_upgraded(up) -> None:
    process = up(read_version_0_2_0(user="local"), port := find_free_port())
    assert any(line.startswith("  page ") for line in process.stdout)
    assert len(get(port, "/chats")["chats"]) == 2
    process.send_signal(signal.SIGINT)
    assert process.wait(WAIT_SECONDS) == 0


def test_version_0_1_0_is_rejected(up) -> None:
    process = up(VERSION_0_1_0, find_free_port())
    output = process.stdout.read()
    assert process.wait(WAIT_SECONDS) == 1, output
    assert "install version 0.2.0 (commit 226d620b), run ./todo migrate there, then install this version" in output
