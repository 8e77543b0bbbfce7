"""Imports of files by `python -m mcp_server import`, and what they say."""

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tests.clock import set_clock
from tests.conftest import ROOT
from tests.logins import as_owner
from tests.mcp.calls import Tools
from tests.processes import INHERITED

PARTLY = 4
ADDED = re.compile(r"Added ([\d,]+) tasks?(?:, ([\d,]+) (?:was|were) there already)?\.")


class Imported:
    """What an import said."""

    def __init__(self, output: bytes, errors: bytes, status: int) -> None:
        self.text, self.errors, self.status = output.decode(), errors.decode(), status

    @property
    def counts(self) -> tuple[int, int]:
        """How many tasks were added, and how many were there already."""
        found = ADDED.search(self.text)
        assert found, self.text + self.errors
        added, there = (int((number or "0").replace(",", "")) for number in found.groups())
        return added, there

    @property
    def lost(self) -> dict[str, str]:
        """How often a column had a value without a field."""
        found = re.search(r"cannot be imported: (.*)\.$", self.text, re.MULTILINE)
        return dict(re.findall(r"([^,() ][^,()]*) \(([^)]*)\)", found[1])) if found else {}

    @property
    def problems(self) -> dict[str, str]:
        """By place why it is no task."""
        lines = [line for line in self.text.splitlines() if re.match(r"(lines?|task) \d", line)]
        return {place: why for place, _, why in (line.partition(": ") for line in lines)}


Import = Callable[..., Imported]


def create_environment(database_url: str) -> dict[str, str]:
    """A Sunday at 10:30 in Berlin."""
    inherited = {name: os.environ[name] for name in INHERITED if name in os.environ}
    now = {**set_clock("2026-11-22T10:30:00+01:00"), "TIME_ZONE": "Europe/Berlin"}
    return {**inherited, **now, "MIGRATION_DATABASE_URL": as_owner(database_url)}


def run_command(environment: dict[str, str], name: str, user: str) -> str:
    arguments = [sys.executable, "-m", "mcp_server", name, f"--user={user}"]
    done = subprocess.run(arguments, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


@contextmanager
def started(environment: dict[str, str], user: str, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", "mcp_server", "import", f"--user={user}", "--name=todo.txt", *arguments]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdin=pipe, stdout=pipe, stderr=pipe) as process:
        yield process


async def listed(tools: Tools) -> list[tuple[str, dict[str, Any]]]:
    """Of each task its title, and what else it says."""
    others = {"user_id", "id", "title", "status", "series", "created_at", "updated_at"}
    tasks = [
        (task["title"], {name: value for name, value in task.items() if value and name not in others})
        for task in await tools.tasks()
    ]
    for _, fields in tasks:
        if "due" in fields:
            fields["due"] = " ".join(filter(None, fields["due"].values()))
        if "completed_at" in fields:
            fields["completed_at"] = fields["completed_at"][:16]
    return tasks
