"""Agents at work for the assistant: what starts one, what is shown of it, and a command that goes on for long."""

from pathlib import Path
from typing import Any

from tests.backend.consent import call
from tests.chatkit_client import Answer

COMMAND = "echo so far; touch begun; sleep 54321"


class Files:
    """What is in the folder of a conversation, below the directory that a workspace keeps."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def of(self, conversation_id: str) -> dict[str, str]:
        folders = self._directory.glob(f"*/{conversation_id}")
        found = (path for folder in folders for path in folder.rglob("*") if path.is_file())
        return {path.name: path.read_text() for path in found}


def coder(task: str = "do it", task_id: int | None = None) -> dict[str, Any]:
    return call("do_with_coder", task=task, task_id=task_id)


def work(answer: Answer) -> dict[str, Any]:
    """The workflow of an agent, as it stays."""
    [item] = [item for item in answer.items if item["type"] == "workflow" and item["workflow"]["type"] == "custom"]
    return item["workflow"]


def sleeping() -> list[str]:
    """The processes of `COMMAND` that are there."""
    found: list[str] = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:
            continue
        if words[:2] == [b"sleep", b"54321"]:
            found.append(str(path))
    return found
