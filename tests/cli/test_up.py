"""What a user sees who types `./todo up`."""

import asyncio
import contextlib
import datetime
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import time
from pathlib import Path

import jwt
import psycopg
import pytest

from cli.database.postgres import Cluster
from cli.errors import CliError
from cli.processes import ownership
from cli.services.ports import Ports, choose_ports
from tests.chatkit_client import Answer, ChatKit
from tests.conftest import find_free_port
from tests.fake_ollama import model, serve_ollama
from tests.waiting import WAIT_SECONDS

KEYS = ("AGENTS", "DATABASE_URL", "LLM_PROVIDER", "LLM_BASE_URL", "LLM_API_KEY", "CEREBRAS_API_KEY", "PG_BIN")
SET = {
    "CEREBRAS_API_KEY": "of-the-model",
    "AWS_SECRET_ACCESS_KEY": "of-nobody-here",
    "WIKI_KEY": "of-another-mcp-server",
    "MCP_SERVERS_FILE": "mcp.json",
    "LLM_PROVIDER": "offline",
    "LOG_LEVEL": "INFO",
    "OTEL_SERVICE_NAME": "todo",
    "IDLE_TIMEOUT_SECONDS": "70",
}


@pytest.fixture
def up(start, shared_dir):
    """Starts `up` in its own data directory, on free ports; the ports are attributes of what it answers."""

    def run(*options: str, chooses_workspace_port: bool = True, **variables: str):
        port, mcp_port, workspace_port = find_free_port(), find_free_port(), find_free_port()
        kept = {name: value for name, value in os.environ.items() if name not in KEYS}
        arguments = ["--port", str(port), "--mcp-port", str(mcp_port)]
        arguments += ["--workspace-port", str(workspace_port)] if chooses_workspace_port else []
        arguments += ["--data-dir", str(shared_dir / "data"), *options]
        # Whoever runs the tests may have an Ollama here.
        process = start(
            "-m", "cli", "up", *arguments, env=kept | {"NO_COLOR": "1", "LLM_PROVIDER": "offline"} | variables
        )
        process.port, process.mcp_port, process.workspace_port = port, mcp_port, workspace_port
        return process

    return run


@pytest.fixture
def ask(start, shared_dir):
    """What a command prints in another terminal, and its exit status."""

    def run(*arguments: str, **variables: str) -> tuple[str, int]:
        kept = {name: value for name, value in os.environ.items() if name not in KEYS}
        command = ["-m", "cli", *arguments, "--data-dir", str(shared_dir / "data")]
        process = start(*command, env=kept | {"NO_COLOR": "1"} | variables)
        output, _ = process.communicate(timeout=WAIT_SECONDS)
        return output, process.returncode

    return run


def wait_until_up(process: subprocess.Popen[str]) -> str:
    return read_until(process, "  try ")


def read_until(process: subprocess.Popen[str], text: str) -> str:
    lines = []
    assert process.stdout
    for line in process.stdout:
        lines.append(line)
        if line.startswith(text):
            return "".join(lines)
    raise AssertionError("".join(lines))


def get(port: int, path: str, *, host: str = "127.0.0.1") -> tuple[int, bytes]:
    connection = http.client.HTTPConnection(host, port, timeout=WAIT_SECONDS)
    connection.request("GET", path)
    response = connection.getresponse()
    body = response.read()
    connection.close()
    return response.status, body


def is_ready(port: int) -> bool:
    with contextlib.suppress(OSError):
        return get(port, "/ready")[0] == 200
    return False


def say(port: int, text: str) -> str:
    """What is answered, in a conversation of its own."""

    async def ask() -> Answer:
        async with ChatKit(f"http://127.0.0.1:{port}") as chat:
            return await chat.say(text)

    answer = asyncio.run(ask())
    assert answer.error is None
    return str(answer.items[1:])


def child_of(process: subprocess.Popen[str], name: str) -> int:
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return next(int(pid) for pid in children if name in Path(f"/proc/{pid}/cmdline").read_text())


def environment_of(pid: int) -> dict[str, str]:
    lines = Path(f"/proc/{pid}/environ").read_text().split("\0")
    return dict(line.split("=", 1) for line in lines if line)


def tools_answer(port: int, *, token: str | None) -> int:
    """The status of a request for the tools."""
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params})
    headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=WAIT_SECONDS)
    connection.request("POST", "/mcp", body, headers | ({"authorization": f"Bearer {token}"} if token else {}))
    status = connection.getresponse().status
    connection.close()
    return status


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


def check_what_each_part_knows(process: subprocess.Popen[str]) -> None:
    """What it reads, of all that was set for `up`, and nothing else."""
    parts = ("backend", "mcp_server", "offline_model")
    backend, tools, model = (environment_of(child_of(process, part)) for part in parts)
    assert {name for name in SET if name in backend} == SET.keys() - {"AWS_SECRET_ACCESS_KEY"}
    services = {"LOG_LEVEL", "OTEL_SERVICE_NAME", "IDLE_TIMEOUT_SECONDS"}
    assert {name for name in SET if name in tools} == services
    assert {name for name in SET if name in model} == {"IDLE_TIMEOUT_SECONDS"}
    assert all(part["PATH"] == os.environ["PATH"] for part in (backend, tools, model))
    assert all({"DATABASE_URL", "MCP_TOKEN_SECRET"} <= part.keys() for part in (backend, tools))
    assert not {"DATABASE_URL", "MCP_TOKEN_SECRET"} & model.keys()
    assert not any("MIGRATION_DATABASE_URL" in part for part in (backend, tools, model))
    pid = child_of(process, "\0workspace\0")
    files = environment_of(pid)
    assert {name for name in SET if name in files} == {"LOG_LEVEL", "IDLE_TIMEOUT_SECONDS"}
    assert [name for name in files if re.search("DATABASE|KEY|SECRET|MCP|OTEL", name)] == ["WORKSPACE_TOKEN_SECRET"]
    assert files["WORKSPACE_TOKEN_SECRET"] == backend["WORKSPACE_TOKEN_SECRET"] != backend["MCP_TOKEN_SECRET"]
    assert "WORKSPACE_TOKEN_SECRET" not in tools | model
    accounts = re.findall(r"^Uid:\s+(.*)$", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)[0].split()
    assert {*accounts} == {"61003" if os.getuid() == 0 else str(os.getuid())}


def check_what_other_terminals_learn(pid: int, mcp_port: int, secret: str, ask, shared_dir: Path) -> None:
    """The settings of `up`, which are in no file, unless something else is set there."""
    source = f"Settings of the running ./todo up (process {pid}).\n"
    elsewhere = {"OLLAMA_HOST": f"127.0.0.1:{find_free_port()}"}
    output, status = ask("models", **elsewhere)
    assert status == 0
    assert source in output
    assert "qwen3:8b (used)" in output
    assert ask("usage", **elsewhere) == (f"No turn was made in these days.\n{source}", 0)
    token, _ = ask("token", "--user", "local", "--days", "2")
    claims = jwt.decode(token.split()[0], secret, ["HS256"], audience=f"http://127.0.0.1:{mcp_port}/mcp")
    assert claims["sub"] == "local"
    output, status = ask("models", LLM_PROVIDER="offline", **elsewhere)
    assert status == 0
    assert "Settings of .env and this terminal.\n" in output
    assert "offline: rules" in output
    assert "There is no database" in ask("usage", LLM_PROVIDER="offline")[0]
    texts = [path.read_text(errors="replace") for path in (shared_dir / "data").rglob("*") if path.is_file()]
    assert not any(secret in text for text in texts)
    private = Path(json.loads((shared_dir / "data/up.json").read_text())["settings"]).parent
    assert (private.stat().st_mode & 0o777, private.stat().st_uid) == (0o700, os.getuid())


def check_status(process, ask, shared_dir: Path, *, since: datetime.date) -> None:
    output, status = ask("status")
    assert status == 0
    days = f"{since}|{datetime.date.today()}"
    missing = r"ready, but mcp\.gone cannot be used: the program no-such-program is not there"
    for name, where, how in (("Backend", process.port, missing), ("MCP server", process.mcp_port, "ready")):
        assert re.search(rf"^  {name} +127\.0\.0\.1:{where} +since (?:{days}) [\d:]+ +{how}$", output, re.MULTILINE)
    assert re.search(r"^  Workspace +127\.0\.0\.1:\d+ +since .* ready, (no )?commands", output, re.MULTILINE)
    assert re.search(r"^  PostgreSQL +a local socket +since .* runs$", output, re.MULTILINE)
    assert f"  page  http://localhost:{process.port}/\n  data  {shared_dir}/data\n" in output
    assert f"./todo up is process {process.pid}.\n" in output

    assert ask("calendar", "--user", "local")[0].startswith(f"http://localhost:{process.port}/calendar/")
    assert ask("calendar", "--user", "alice") == (
        "error: There is no user alice: with AUTH_MODE=none the only user is local.\n",
        1,
    )
    token, _ = ask("token", "--user", "local")
    audience = jwt.decode(token.split()[0], options={"verify_signature": False})["aud"]
    assert audience == f"http://127.0.0.1:{process.mcp_port}/mcp"

    output, status = ask("up", "--port", str(process.port), LLM_PROVIDER="offline")
    assert status == 1
    assert output.startswith(f"error: The data directory {shared_dir}/data is in use by process {process.pid}, ")
    assert (
        f"with the page at http://localhost:{process.port}/. ./todo status --data-dir {shared_dir}/data shows it"
        in output
    )
    assert output.count("\n") == 1

    os.kill(child_of(process, "mcp_server"), signal.SIGSTOP)
    output, status = ask("status")
    assert status == 2
    assert re.search(r"^  MCP server .* does not answer$", output, re.MULTILINE)
    os.kill(child_of(process, "mcp_server"), signal.SIGCONT)


@pytest.mark.parametrize(("family", "address"), [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")])
def test_port_in_use(up, family, address):
    with socket.create_server((address, 0), family=family) as taken:
        port = taken.getsockname()[1]
        process = up("--port", str(port))
        output, _ = process.communicate(timeout=WAIT_SECONDS)
        for position, option in ((1, "--mcp-port"), (2, "--workspace-port")):
            wanted = [find_free_port() for _ in range(3)]
            wanted[position] = port
            with pytest.raises(CliError, match=f"^Port {port} .* choose another port with {option}\\.$"):
                choose_ports(Ports(*wanted), has_workspace=True)
    assert process.returncode == 1
    assert output == (
        f"error: Port {port} of {address} cannot be used (Address already in use): choose another port with --port.\n"
    )


def test_one_port_for_two():
    port, other = find_free_port(), find_free_port()
    for ports in (Ports(port, port, other), Ports(other, port, port)):
        with pytest.raises(CliError, match=f"cannot share port {port}: "):
            choose_ports(ports, has_workspace=True)


LOOK = """
import sys
from pathlib import Path
from cli.processes import ownership
print("looking", flush=True)
while True:
    ownership.find_owner(Path(sys.argv[1]))
"""


def test_to_look_whether_it_runs_keeps_it_from_no_start(start, tmp_path):
    looking = start("-c", LOOK, str(tmp_path))
    assert looking.stdout.readline() == "looking\n"
    for _ in range(500):
        ownership.take(tmp_path).release()


def test_directory_that_cannot_be_written(up, tmp_path):
    (tmp_path / "file").touch()
    process = up("--data-dir", str(tmp_path / "file"))
    output, _ = process.communicate(timeout=WAIT_SECONDS)
    assert process.returncode == 1
    assert re.fullmatch(r"error: The data directory \S+/file cannot be written: [\w ]+\.\n", output)


@pytest.mark.long(seconds=20)
class TestRunning:
    def test_start_status_and_stop(self, up, ask, shared_dir):
        assert ask("status") == (
            f"Nothing is running with the data in {shared_dir}/data. Start it with ./todo up.\n",
            1,
        )
        servers = shared_dir / "mcp.json"
        gone = {"command": "no-such-program", "env": {"KEY": "${env:WIKI_KEY}"}, "readOnly": True}
        servers.write_text(json.dumps({"mcpServers": {"gone": gone}}))
        started_on = datetime.date.today()
        variables = SET | {"MCP_SERVERS_FILE": str(servers), "BACKEND_HOST": "::1", "MCP_HOST": "192.0.2.1"}
        with socket.socket() as taken:
            taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            with contextlib.suppress(OSError):  # somebody else has it
                taken.bind(("127.0.0.1", 8003))
                taken.listen()
            process = up(chooses_workspace_port=False, **variables)
            output = wait_until_up(process)
        parts = json.loads((shared_dir / "data/up.json").read_text())["parts"]
        workspace_port = next(part["port"] for part in parts if part["name"] == "Workspace")
        assert workspace_port != 8003
        warnings = [line for line in output.splitlines() if "is ignored" in line]
        assert warnings == ["note: MCP_HOST is ignored: ./todo up serves this machine only, at localhost."]
        for name in ("PostgreSQL", "Migrations", "Offline model", "MCP server", "Workspace", "Backend"):
            assert re.search(rf"^  starting  {name}$", output, re.MULTILINE)
            assert re.search(rf"^  ready     {name}\b", output, re.MULTILINE)
        assert f"  logs      {shared_dir}/data/logs, or ./todo logs\n" in output
        assert f"  page      http://localhost:{process.port}/\n" in output, "for it OpenAI's widget needs no key"
        assert "  try       open the page and write: call the bank tomorrow at 9 and buy milk\n" in output
        assert f"http://127.0.0.1:{process.port}/chatkit" in output
        assert f"http://127.0.0.1:{process.mcp_port}/mcp" in output
        assert "offline: fixed rules" in output
        assert not [line for line in output.splitlines() if len(line) > 80 and str(shared_dir) not in line]
        status, body = get(process.port, "/ready")
        assert (status, json.loads(body)["status"]) == (200, "ready")
        for port in (process.port, process.mcp_port, workspace_port):
            for host in ("127.0.0.1", "::1"):
                assert get(port, "/health", host=host)[0] == 200, "localhost may be either"
        assert tools_answer(process.mcp_port, token="made up") == 401, (
            "its calls are signed, so a wrong token is rejected"
        )
        assert tools_answer(process.mcp_port, token=None) == 200, "and none is needed"
        assert tools_answer(workspace_port, token=None) == 401, "nothing of the workspace is served without one"
        for secret in ("mcp_token_secret", "workspace_token_secret"):
            assert (shared_dir / "data" / secret).stat().st_mode & 0o777 == 0o600
        assert (shared_dir / "data/workspaces").stat().st_mode & 0o777 == 0o700
        check_what_each_part_knows(process)
        check_status(process, ask, shared_dir, since=started_on)

        process.send_signal(signal.SIGTERM)
        output, _ = process.communicate(timeout=WAIT_SECONDS)
        assert (process.returncode, output) == (0, "\nStopping …\nStopped.\n")
        assert running_in(shared_dir) == []
        logs = {path.stem for path in (shared_dir / "data/logs").iterdir()}
        assert {"backend", "mcp-server", "workspace", "offline-model", "migrations", "postgres"} <= logs
        assert ask("status")[1] == 1
        output, status = ask("logs", "backend")
        assert status == 0
        assert "backend listens on http://127.0.0.1" in output
        assert " mcp-server | " in ask("logs")[0]

    def test_only_what_is_needed_is_started(self, up, ask, shared_dir, empty_database_url):
        with serve_ollama(model("qwen3:8b", "completion", "tools")) as ollama:
            secret = "of-this-terminal-alone" * 2
            chosen = {"OLLAMA_HOST": ollama, "DATABASE_URL": empty_database_url, "MCP_TOKEN_SECRET": secret}
            process = up(AGENTS="off", LLM_PROVIDER="", **chosen)
            output = wait_until_up(process)
            check_what_other_terminals_learn(process.pid, process.mcp_port, secret, ask, shared_dir)
        assert "PostgreSQL" not in output
        assert "Workspace" not in output
        variables = environment_of(child_of(process, "backend"))
        assert "WORKSPACE_URL" not in variables
        assert not (shared_dir / "data/workspaces").exists()
        assert "Offline model" not in output
        assert f"  model     qwen3:8b on ollama\n            found at http://{ollama}, on this machine" in output
        assert "OLLAMA_CONTEXT_LENGTH" in output
        assert (variables["LLM_PROVIDER"], variables["LLM_BASE_URL"]) == ("ollama", f"http://{ollama}/v1")
        assert "OLLAMA_HOST" not in variables
        private = Path(json.loads((shared_dir / "data/up.json").read_text())["settings"]).parent
        process.send_signal(signal.SIGINT)
        assert process.wait(WAIT_SECONDS) == 0
        assert not private.exists()

    def test_it_and_its_parts_are_killed_and_started_again(self, up, shared_dir, eventually):
        first = up()
        wait_until_up(first)
        private = Path(json.loads((shared_dir / "data/up.json").read_text())["settings"]).parent
        first.kill()
        first.wait()
        ports = ("--port", "--mcp-port", "--workspace-port")
        same = zip(ports, map(str, (first.port, first.mcp_port, first.workspace_port)), strict=True)
        process = up(*(word for pair in same for word in pair))  # while services of the first still end
        output = wait_until_up(process)
        assert "ready     Backend" in output
        assert "Migrations" not in output, "the tables are those of this version"
        assert not private.exists()
        say(first.port, "add buy milk")
        for name, shown in (
            ("\0workspace\0", "Workspace"),
            ("mcp_server", "MCP server"),
            ("backend", "Backend"),
            ("bin/postgres", "PostgreSQL"),
        ):
            os.kill(child_of(process, name), signal.SIGKILL)
            assert f"  died      {shown}" in read_until(process, f"  ready     {shown}")
            eventually(lambda: is_ready(first.port))
            assert "buy milk" in say(first.port, "show my tasks")

        settings = shared_dir / "data/postgres/postgresql.conf"
        good = settings.read_text()
        settings.write_text(f"{good}no_such_setting = 1\n")
        os.kill(child_of(process, "bin/postgres"), signal.SIGKILL)
        reported = read_until(process, "  died      PostgreSQL     could not be started: PostgreSQL did not start;")
        assert "restarts in 1 s" in reported
        for port in (first.port, first.mcp_port, first.workspace_port):
            assert get(port, "/health")[0] == 200
        settings.write_text(good)
        read_until(process, "  ready     PostgreSQL     again")
        process.kill()
        process.wait()
        eventually(lambda: running_in(shared_dir) == [])
        with Cluster.start(shared_dir / "data") as cluster, psycopg.connect(cluster.admin_url) as connection:
            assert connection.execute("SELECT title FROM tasks").fetchall() == [("buy milk",)]

    @pytest.mark.skipif(os.getuid() != 0, reason="needs root, who may mount a disk")
    def test_full_disk(self, up, start, shared_dir, eventually):
        (shared_dir / "data").mkdir(mode=0o711)
        mount = ["mount", "-t", "tmpfs", "-o", "size=200m,mode=711", "tmpfs", str(shared_dir / "data")]
        subprocess.run(mount, check=True)
        try:
            process = up()
            wait_until_up(process)
            say(process.port, "add buy milk")
            filler = shared_dir / "data/filler"
            with contextlib.suppress(OSError), filler.open("wb") as file:
                while True:
                    file.write(bytes(1_000_000))
            for name, shown in (
                ("bin/postgres", "PostgreSQL"),
                ("\0backend\0", "Backend"),
                ("mcp_server", "MCP server"),
                ("\0workspace\0", "Workspace"),
            ):
                os.kill(child_of(process, name), signal.SIGKILL)
                read_until(process, f"  died      {shown}")
            time.sleep(3)
            assert process.poll() is None
            filler.unlink()
            # PostgreSQL may have died five times, and is tried again after a minute; then it waits for a checkpoint.
            eventually(lambda: is_ready(process.port))
            assert "buy milk" in say(process.port, "show my tasks")
            process.terminate()
            assert process.wait(WAIT_SECONDS) == 0
        finally:
            subprocess.run(["umount", "--lazy", str(shared_dir / "data")], check=True)

    def test_database_that_cannot_be_reached(self, up):
        process = up(DATABASE_URL=f"postgresql://nobody@127.0.0.1:{find_free_port()}/none")
        output, _ = process.communicate(timeout=WAIT_SECONDS)
        assert process.returncode == 1
        assert "The database cannot be reached" in output
