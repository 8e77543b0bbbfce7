"""The real thing: what a person sees who types `./todo up`."""

import http.client
import json
import os
import re
import signal
import socket
import subprocess
from pathlib import Path

import psycopg
import pytest

from cli.postgres import Cluster

KEYS = ("DATABASE_URL", "LLM_PROVIDER", "LLM_BASE_URL", "LLM_API_KEY", "CEREBRAS_API_KEY", "PG_BIN")


@pytest.fixture
def up(start, shared_dir, free_port):
    """Starts `up` in its own data directory, on free ports; the ports are attributes of what it answers."""

    def run(*options: str, **variables: str):
        port, mcp_port = free_port(), free_port()
        kept = {name: value for name, value in os.environ.items() if name not in KEYS}
        arguments = ["--port", str(port), "--mcp-port", str(mcp_port), "--data-dir", str(shared_dir / "data"), *options]
        process = start("-m", "cli", "up", *arguments, env=kept | {"NO_COLOR": "1"} | variables)
        process.port, process.mcp_port = port, mcp_port
        return process

    return run


def wait_until_up(process: subprocess.Popen[str]) -> str:
    lines = []
    assert process.stdout
    for line in process.stdout:
        lines.append(line)
        if line.startswith("Ctrl-C stops"):
            return "".join(lines)
    raise AssertionError("".join(lines))


def get(port: int, path: str) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request("GET", path)
    response = connection.getresponse()
    body = response.read()
    connection.close()
    return response.status, body


def running_in(data_dir: Path) -> list[str]:
    """The command lines of living processes that know this directory's socket or port."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal() and int(entry.name) != os.getpid():
            try:
                text = (entry / "environ").read_text(errors="replace") + (entry / "cmdline").read_text(errors="replace")
            except OSError:
                continue
            if str(data_dir) in text:
                found.append(text)
    return found


@pytest.mark.parametrize("option", ["--port", "--mcp-port"])
def test_a_port_in_use_is_one_sentence(up, option):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        process = up(option, str(port))
        output, _ = process.communicate(timeout=20)
    assert process.returncode == 1
    assert output == (
        f"error: Port {port} of 127.0.0.1 cannot be used (Address already in use): choose another one with {option}.\n"
    )


def test_one_port_for_both_is_refused(up, free_port):
    port = str(free_port())
    process = up("--port", port, "--mcp-port", port)
    output, _ = process.communicate(timeout=20)
    assert (process.returncode, output.count("\n")) == (1, 1)
    assert "cannot share port" in output


def test_a_directory_that_cannot_be_written_is_one_sentence(up, tmp_path):
    (tmp_path / "file").touch()
    process = up("--data-dir", str(tmp_path / "file"))
    output, _ = process.communicate(timeout=20)
    assert process.returncode == 1
    assert re.fullmatch(r"error: The data directory \S+/file cannot be written: [\w ]+\.\n", output)


def test_an_unknown_argument_is_refused(up):
    process = up("--workers", "2")
    output, _ = process.communicate(timeout=20)
    assert process.returncode == 2
    assert "unrecognized arguments: --workers 2" in output


@pytest.mark.long
class TestRunning:
    def test_from_nothing_to_ready_and_to_nothing_again(self, up, shared_dir):
        process = up()
        output = wait_until_up(process)
        for name in ("PostgreSQL", "Migrations", "Offline model", "MCP server", "Backend"):
            assert re.search(rf"^  starting  {name}$", output, re.MULTILINE)
            assert re.search(rf"^  ready     {name}\b", output, re.MULTILINE)
        assert f"  page      http://localhost:{process.port}/\n" in output, "for it OpenAI's widget needs no key"
        assert f"http://127.0.0.1:{process.port}/chatkit" in output
        assert f"http://127.0.0.1:{process.mcp_port}/mcp" in output
        assert "offline: rules instead of a language model" in output
        status, body = get(process.port, "/ready")
        assert (status, json.loads(body)["status"]) == (200, "ready")
        assert get(process.mcp_port, "/ready")[0] == 200

        process.send_signal(signal.SIGTERM)
        output, _ = process.communicate(timeout=60)
        assert (process.returncode, output) == (0, "\nStopping …\nStopped.\n")
        assert running_in(shared_dir) == []
        logs = {path.name for path in (shared_dir / "data/logs").iterdir()}
        assert {"backend.log", "mcp-server.log", "offline-model.log", "migrations.log", "postgres.log"} <= logs

    def test_killed_it_leaves_nothing_running_and_starts_again(self, up, shared_dir, eventually):
        process = up()
        wait_until_up(process)
        process.kill()
        process.wait()
        eventually(lambda: running_in(shared_dir) == [], seconds=20)
        process = up()
        wait_until_up(process)

    @pytest.mark.parametrize(("name", "shown"), [("mcp_server", "MCP server"), ("postgres", "PostgreSQL")])
    def test_a_part_that_is_killed_is_named_and_the_rest_stopped(self, up, shared_dir, name, shown):
        process = up()
        wait_until_up(process)
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        victim = next(pid for pid in children if name in Path(f"/proc/{pid}/cmdline").read_text())
        os.kill(int(victim), signal.SIGKILL)
        output, _ = process.communicate(timeout=60)
        assert process.returncode == 1
        assert f"error: {shown} was killed by SIGKILL; the end of {shared_dir}" in output
        assert running_in(shared_dir) == []
        with Cluster.start(shared_dir / "data") as cluster, psycopg.connect(cluster.url) as connection:
            assert connection.execute("SELECT count(*) FROM alembic_version").fetchone() == (1,)

    def test_a_second_one_on_the_same_data_is_told_who_has_it(self, up):
        first = up()
        wait_until_up(first)
        second = up()
        output, _ = second.communicate(timeout=20)
        assert second.returncode == 1
        assert f"is in use by process {first.pid}." in output

    def test_with_a_database_of_ones_own_none_is_started(self, up, empty_database_url):
        process = up(DATABASE_URL=empty_database_url)
        assert "PostgreSQL" not in wait_until_up(process)
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0

    def test_a_database_that_cannot_be_reached_is_said_at_once(self, up, free_port):
        process = up(DATABASE_URL=f"postgresql://nobody@127.0.0.1:{free_port()}/none")
        output, _ = process.communicate(timeout=60)
        assert process.returncode == 1
        assert "The database cannot be reached" in output
