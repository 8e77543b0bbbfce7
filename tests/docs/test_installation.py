"""Commands of the documents on an installation that `./todo up` has started, in the order of a reader."""

import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import ROOT, find_free_port
from tests.docs.documents import COMMANDS, EXCEPTIONS, HTTP_DOCUMENTS, Command, check_answer, find_definitions
from tests.processes import INHERITED, PATIENT_SETTINGS

pytestmark = pytest.mark.long(seconds=60)

READ_FIRST = ("README.md", "docs/getting-started.md", "docs/terminal.md", "docs/models.md", "docs/agents.md")
SERVER = """
from fastmcp import FastMCP

server = FastMCP("fetch")


@server.tool(annotations={"readOnlyHint": True})
def fetch(url: str) -> str:
    \"\"\"Fetches a page.\"\"\"
    return url


server.run(show_banner=False)
"""


class Installation:
    """A directory in which a reader types the commands."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        inherited = {name: os.environ[name] for name in INHERITED if name in os.environ}
        mcp_servers = directory / "mcp.json"
        self.environment = {
            **inherited,
            **PATIENT_SETTINGS,
            "PYTHONPATH": str(ROOT),
            "NO_COLOR": "1",
            "LLM_PROVIDER": "offline",
            "MCP_SERVERS_FILE": str(mcp_servers),
        }
        self.port, *others = (find_free_port() for _ in range(3))
        self._ports = f"--port {self.port} --mcp-port {others[0]} --workspace-port {others[1]}"
        self._up: subprocess.Popen[str] | None = None
        (directory / "tasks.txt").write_text("water the plants due:2026-12-01\n")
        (directory / "fetch.py").write_text(SERVER)
        mcp_servers.write_text(json.dumps({"mcpServers": {"fetch": read_example_server(directory)}}))
        author = ("-c", "user.name=author", "-c", "user.email=author@todo.example")
        for command in (
            ["git", "init", "--quiet", "repository"],
            ["git", "-C", "repository", *author, "commit", "--quiet", "--allow-empty", "--message=First"],
        ):
            subprocess.run(command, cwd=directory, check=True)

    def run(self, command: str, definitions: str = "") -> str:
        """What a command prints to stdout, in a shell where others have set their variables."""
        if command == "./todo up":
            self._start(self._adapt(command))
            return ""
        text = f"{self._adapt(definitions)}\n{self._adapt(command)}"
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", text],
            cwd=self.directory,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
            stdin=subprocess.DEVNULL,
        )
        assert done.returncode == 0, text + done.stdout + done.stderr
        if command == "./todo down":
            self.end()
        return done.stdout

    def end(self) -> None:
        if self._up:
            self._up.terminate()
            self._up.communicate(timeout=120)
            self._up = None

    def _adapt(self, text: str) -> str:
        """Puts in what the reader chooses, and this installation's addresses."""
        text = text.replace("localhost:8000", f"localhost:{self.port}").replace("NAME", "local")
        text = text.replace("FILE ", "tasks.txt ").replace("https://git.example/todo-assistant.git", "./repository")
        text = text.replace("./todo forget", "./todo forget --yes").replace(
            "./todo restore", "./todo restore --replace"
        )
        text = text.replace("./todo up", f"./todo up {self._ports}")
        data_dir = f"--data-dir {self.directory}/data"
        if "./todo " in text:
            text += f" {data_dir}"
        return text.replace("./todo ", f"{sys.executable} -P -m cli ")

    def _start(self, text: str) -> None:
        """Unless it runs: each document begins with this."""
        if self._up:
            return
        self._up = subprocess.Popen(
            shlex.split(text),
            cwd=self.directory,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert self._up.stdout
        printed = ""
        for line in self._up.stdout:
            printed += line
            if line.startswith("  page "):
                return
        raise AssertionError(printed)


def read_example_server(directory: Path) -> dict[str, object]:
    """The first server of the example, with a program of ours."""
    [example] = re.findall(r"```json\n(.*?)```", (ROOT / "docs/agents.md").read_text(), re.DOTALL)
    return {
        **json.loads(example)["mcpServers"]["fetch"],
        "command": sys.executable,
        "args": [str(directory / "fetch.py")],
    }


@pytest.fixture(scope="module")
def installation() -> Iterator[Installation]:
    with tempfile.TemporaryDirectory(prefix="todo-docs-") as name:
        directory = Path(name)
        directory.chmod(0o711)  # PostgreSQL's user may be another
        installation = Installation(directory)
        try:
            yield installation
        finally:
            installation.end()


def executed_here(command: Command) -> bool:
    return not command.exception and not ("curl " in command.text and command.document in HTTP_DOCUMENTS)


def test_commands(installation: Installation, subtests: pytest.Subtests) -> None:
    here = [command for command in COMMANDS if executed_here(command)]
    position = {document: number for number, document in enumerate(READ_FIRST)}
    for command in sorted(here, key=lambda command: position.get(command.document, len(position))):
        with subtests.test(command.text, document=command.document):
            check_answer(command, installation.run(command.text, find_definitions(command)))


def test_approval_without_a_model(installation: Installation) -> None:
    """The commands of api.md in one shell, as a reader pastes them."""
    texts = [command.text for command in COMMANDS if command.document == "docs/api.md"]
    first, last = (next(i for i, text in enumerate(texts) if word in text) for word in ("for pancakes", "/approve"))
    *start, read_run, read_approval, approve = texts[first : last + 1]
    wait = f"until {{ {read_run} && {read_approval}; }} 2>/dev/null; do sleep 0.1; done"  # a reader is slower
    installation.run("./todo up")
    printed = installation.run("\n".join([texts[0], *start, wait, approve, "wait"]))
    assert "event: approval_required" in printed
    assert "200 g flour" in printed
    assert '"status": "COMPLETED"' in printed


def test_each_exception_is_needed() -> None:
    assert {command.exception for command in COMMANDS} == {None, *EXCEPTIONS}
