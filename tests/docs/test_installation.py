"""Commands of the documents on an installation that `./todo up` has started, in the order of a reader."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.conftest import ROOT, find_free_port
from tests.docs.documents import COMMANDS, EXCEPTIONS, HTTP_DOCUMENTS, Command, check_answer
from tests.processes import INHERITED, PATIENT_SETTINGS

pytestmark = pytest.mark.long(seconds=30)

READ_FIRST = ("README.md", "docs/getting-started.md", "docs/terminal.md", "docs/models.md", "docs/agents.md")


@dataclass(frozen=True)
class Installation:
    directory: Path
    environment: dict[str, str]
    port: int

    def run(self, command: str) -> str:
        """What a command prints to stdout, typed in a directory with a file of tasks."""
        command = command.replace("localhost:8000", f"localhost:{self.port}").replace("NAME", "local")
        command = command.replace("FILE ", "tasks.txt ").replace("./todo forget", "./todo forget --yes")
        if "./todo " in command and "./todo models" not in command:
            command += f" --data-dir {self.directory}/data"
        command = command.replace("./todo ", f"{sys.executable} -P -m cli ")
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", command],
            cwd=self.directory,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
            stdin=subprocess.DEVNULL,
        )
        assert done.returncode == 0, command + done.stdout + done.stderr
        return done.stdout


@pytest.fixture
def installation() -> Iterator[Installation]:
    with tempfile.TemporaryDirectory(prefix="todo-docs-") as name:
        directory = Path(name)
        directory.chmod(0o711)  # PostgreSQL's user may be another
        (directory / "tasks.txt").write_text("water the plants due:2026-12-01\n")
        environment = {name: os.environ[name] for name in INHERITED if name in os.environ}
        environment |= {**PATIENT_SETTINGS, "PYTHONPATH": str(ROOT), "NO_COLOR": "1", "LLM_PROVIDER": "offline"}
        ports = [find_free_port() for _ in range(3)]
        options = ["--port", "--mcp-port", "--workspace-port"]
        arguments = [part for option, port in zip(options, ports, strict=True) for part in (option, str(port))]
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "cli", "up", "--data-dir", str(directory / "data"), *arguments],
            cwd=directory,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        try:
            assert process.stdout
            lines = iter(process.stdout)
            assert any(line.startswith("  page ") for line in lines)
            yield Installation(directory, environment, ports[0])
        finally:
            process.terminate()
            process.communicate(timeout=120)


def executed_here(command: Command) -> bool:
    return not command.exception and not (command.text.startswith("curl ") and command.document in HTTP_DOCUMENTS)


def test_commands(installation: Installation, subtests: pytest.Subtests) -> None:
    here = [command for command in COMMANDS if executed_here(command)]
    position = {document: number for number, document in enumerate(READ_FIRST)}
    for command in sorted(here, key=lambda command: position.get(command.document, len(position))):
        with subtests.test(command.text, document=command.document):
            check_answer(command, installation.run(command.text))


def test_each_exception_is_needed() -> None:
    assert {command.exception for command in COMMANDS} == {None, *EXCEPTIONS}
