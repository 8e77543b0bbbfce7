"""The commands of the README and of docs/, and the answers that they print."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from textwrap import dedent

from tests.conftest import ROOT

DOCUMENTS = ("README.md", *sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md")))
HTTP_DOCUMENTS = ("docs/api.md", "docs/frontends.md", "docs/agents.md")
"""Their requests are sent by tests/docs/test_http.py: some need a model that is slow, or that calls a certain tool."""
EXCEPTIONS = {
    r"(CEREBRAS_API_KEY=… )?\./todo up$": "the other commands use what it starts; the key is one's own",
    r"\./todo chat$": "reads a terminal: tests/cli/chat",
    r"\./todo test$": "runs these tests",
    r"cd ": "works in a directory of one's own: tests/cli/chat/test_directory.py",
    r"\./todo (bench|eval)": "take minutes: tests/bench, tests/evals",
    r"\./todo mcp ": "need a server from the internet: tests/api/test_connectors.py",
    r"npx ": "from the internet: tests/mcp/test_inspector.py",
    r"docker ": "needs Docker: tests/compose",
    r"kubectl ": "needs a cluster: tests/scale/test_kubernetes.py",
    r"(OLLAMA\S+ )?ollama ": "needs Ollama: tests/cli/test_ollama.py",
    r"pip |python ": "tests/todo_client/test_documentation.py runs the programs of docs/python.md",
    r"PGOPTIONS|psql|pg_|\.venv/|\./todo (backup|restore)": "tests/cli/test_backup.py, tests/migrations/test_roles.py",
}
"""Patterns of commands that are not executed here, and why."""

_BLOCK = re.compile(r"^#[^\n]*|(?<=\n\n)(?:    [^\n]*\n)+|^ *```sh\n.*?^ *```$", re.MULTILINE | re.DOTALL)
_PROGRAM = r"\./todo|cd |curl|docker|echo|kubectl|npx|ollama|pg_\w+|pip|psql|python|\.venv/"
_COMMAND = re.compile(rf"([A-Z_]+=\S+ )*({_PROGRAM})|PGOPTIONS=")
_ANSWER = re.compile(r"\{|data: |id: ")
_NEITHER = re.compile(r"([A-Z_]+=.*\n?)+$|ALTER ROLE |call the bank |const |new |\w+Message\w*[:(]")
"""Settings, SQL, a message to write, and JavaScript."""


@dataclass
class Command:
    document: str
    text: str
    answers: list[str] = field(default_factory=list)
    """What it prints, according to the document."""

    @property
    def exception(self) -> str | None:
        return next((pattern for pattern in EXCEPTIONS if re.match(pattern, self.text)), None)


def list_commands(document: str) -> Iterator[Command]:
    """An answer belongs to the command before it, if no heading is between them."""
    command: Command | None = None
    for block in _BLOCK.findall((ROOT / document).read_text()):
        text = dedent(block).strip()
        if text.startswith("#") or text.startswith("```"):
            yield from [command] if command else []
            command = None
            if text.startswith("```"):
                yield Command(document, text.removeprefix("```sh\n").removesuffix("```").strip())
        elif _COMMAND.match(text):
            for line in text.splitlines():
                if not _COMMAND.match(line) and command:
                    command.text += f"\n{line}"
                else:
                    yield from [command] if command else []
                    command = Command(document, line)
        elif _ANSWER.match(text):
            if command:
                command.answers.append(text)
        else:
            assert _NEITHER.match(text), f"{document} has a block that is neither a command nor an answer: {text}"
    yield from [command] if command else []


COMMANDS = [command for document in DOCUMENTS for command in list_commands(document)]


def check_answer(command: Command, printed: str) -> None:
    """Checks that a command has printed its answers in their order.

    In these, "…" stands for any text, an id or a date for any other, and spaces may differ.
    """
    position = 0
    for answer in command.answers:
        pattern = r"\s*".join(map(re.escape, answer.split())).replace("…", ".*?")
        pattern = re.sub(r"\d{4}\\-\d\d\\-\d\d(T\d\d:\d\d:\d\d)?", r"[-\\dT:.]+", pattern)
        pattern = re.sub(r'\b((?:id|number)"?:(?:\\s\*)?)\d+', r"\1\\d+", pattern)
        found = re.compile(pattern, re.DOTALL).search(printed, position)
        assert found, f"{command.text}\nprints, in {command.document}:\n{answer}\nand here:\n{printed[position:]}"
        position = found.end()
