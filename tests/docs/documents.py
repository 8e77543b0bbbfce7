"""The commands of the README and of docs/, and the answers that they print."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from textwrap import dedent

from tests.conftest import ROOT

DOCUMENTS = (
    "README.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    *sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md")),
)
HTTP_DOCUMENTS = ("docs/api.md", "docs/frontends.md", "docs/agents.md")
"""Their requests are sent by tests/docs/test_http.py: some need a model that is slow, or that calls a certain tool."""
EXCEPTIONS = {
    r"CEREBRAS_API_KEY=… ": "needs a key of one's own",
    r"\./todo chat$": "reads a terminal: tests/cli/chat",
    r"cd ~": "works in a directory of one's own: tests/cli/chat/test_directory.py",
    r"\./todo test$": "runs these tests",
    r"\./todo (bench|eval)": "take minutes: tests/bench, tests/evals",
    r"\./todo link": "needs a local network: tests/browser/test_phone.py",
    r"\./todo user adopt": "needs two users: tests/cli/test_adopt.py",
    r"npx ": "from the internet: tests/mcp/test_inspector.py",
    r"docker |\./todo (backup|restore) --compose": "needs Docker: tests/compose, tests/cli/test_backup.py",
    r"kubectl ": "needs a cluster: tests/scale/test_kubernetes.py",
    r"(OLLAMA\S+ )?ollama ": "needs Ollama: tests/cli/test_ollama.py",
    r"pip ": "needs a package index",
    r"\.venv/bin/python -m tests\.real_model": "takes minutes: tests/real_model",
    r"python ask.py": "runs a program of the page: tests/todo_client/test_documentation.py",
    r"psql ": "needs a server of one's own: tests/migrations/test_managed.py executes it",
}
"""Patterns of commands that are not executed on one installation, and why, and what is tested instead."""
PROGRAMS = {
    "python": ("docs/notification-channels.md", "docs/python.md"),
    "json": ("docs/agents.md", "docs/notification-channels.md", "docs/python.md"),
    **dict.fromkeys(("caddy", "haproxy"), ("docs/sign-in.md",)),
}
"""Languages of other blocks, in the documents whose tests execute or read them."""

_BLOCK = re.compile(r"^#[^\n]*|(?<=\n\n)(?:    [^\n]*\n)+|^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)
_PROGRAM = (
    r"\./todo|\.venv/bin/python|cd |curl|docker|echo|field\(\)|git |kubectl|npx|ollama|pip|psql|python|[A-Z]+=\$\(|"
    r"REPOSITORY="
)
_COMMAND = re.compile(rf"([A-Z_]+=\S+ )*({_PROGRAM})")
_ANSWER = re.compile(r"\{|data: |id: ")
_NEITHER = re.compile(
    r"([A-Z_]+=[^\s$]*(\n|$))+\Z|ALTER ROLE |call the bank |const |handle |https://|new |\w+Message\w*[:(]"
)
"""Settings, SQL, a message to write, JavaScript, and lines for Caddy."""
_DIAGRAM = re.compile(r"```\n(?!.*\./todo).*[─►]", re.DOTALL)


@dataclass
class Command:
    document: str
    text: str
    answers: list[str] = field(default_factory=list)
    """What it prints, according to the document."""

    @property
    def exception(self) -> str | None:
        return next((pattern for pattern in EXCEPTIONS if re.match(pattern, self.text)), None)

    @property
    def sets(self) -> str | None:
        """The variable or function that later commands use."""
        found = re.match(r"([A-Z]+)=(?:\$\(|http)|(\w+)\(\) ", self.text)
        return (found[1] or found[2]) if found else None


def list_commands(document: str) -> Iterator[Command]:
    """An answer belongs to the command before it, if no heading is between them."""
    command: Command | None = None
    for block in _BLOCK.findall((ROOT / document).read_text()):
        text = dedent(block).strip()
        if text.startswith("#") or text.startswith("```"):
            yield from [command] if command else []
            command = None
            if text.startswith("```sh\n"):
                yield Command(document, text.removeprefix("```sh\n").removesuffix("```").strip())
            elif text.startswith("```"):
                language = text.removeprefix("```").partition("\n")[0]
                known = document in PROGRAMS.get(language, ()) or _DIAGRAM.match(text)
                assert known, f"{document} has a block that nothing executes: {text}"
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


def find_definitions(command: Command) -> str:
    """The earlier commands of the document that set what the command uses, one a line."""
    earlier = COMMANDS[: COMMANDS.index(command)]
    needed: list[str] = []
    for one in reversed([one for one in earlier if one.document == command.document and one.sets]):
        later = "\n".join([command.text, *needed])
        if re.search(rf"(\$|\| ){one.sets}\b", later) and one.text not in needed:
            needed.insert(0, one.text)
    return "\n".join(needed)


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
