"""Replies of the offline model without the task tools: assignments of agents, and summaries."""

import re
import shlex
from collections.abc import Sequence

from offline_model import replies
from offline_model.plans import PlannedCall
from offline_model.protocol import ChatMessage

_TASK = re.compile(
    r"\AYour work(?: \(task \d+ of the person's list\))?: (.*?)(?:\n\nThe person's own message|\Z)", re.DOTALL
)
_FILE = r"[`\"']?(?P<path>[\w./-]{1,200}\.\w{1,10})[`\"']?"
_WRITE = re.compile(rf"\b(?:write|make|create|put) (?P<what>.{{1,200}}?) (?:to|into|in|as) {_FILE}", re.IGNORECASE)
_COUNT = re.compile(rf"\bcount (?:the )?words (?:of|in) (?:the file )?{_FILE}", re.IGNORECASE)
_COUNTED = re.compile(r"^stdout:\n\s*(\d+)", re.MULTILINE)
_LINE = re.compile(r"^\d+: (.*)$", re.MULTILINE)
_PANCAKES = ("200 g flour", "2 eggs", "300 ml milk", "1 tablespoon sugar", "1 pinch of salt", "butter for the pan")
_SUMMARISE = re.compile(r"\s*(?:please )?summari[sz]e", re.IGNORECASE)
_LINES = 8
_LINE_CHARACTERS = 160
CANNOT = f"I could not do this: as an agent, I can only do work such as {replies.AGENT_WORK}. I did nothing."


def can_do(assignment: str) -> bool:
    task = " ".join(assignment.split())
    return bool(_COUNT.search(task) or _find_written(task))


def find_next_step(messages: Sequence[ChatMessage], tools: frozenset[str]) -> str | tuple[PlannedCall, ...]:
    match = next((_TASK.match(message.content) for message in messages if message.role == "user"), None)
    task = " ".join(match[1].split()) if match else ""
    outputs = [message.content for message in messages if message.role == "tool"]
    if found := _COUNT.search(task):
        return _count(found["path"], outputs) if "run_command" in tools else CANNOT
    if found := _find_written(task):
        return _write(found["what"], found["path"], outputs)
    return CANNOT


def _find_written(task: str) -> re.Match[str] | None:
    found = _WRITE.search(task)
    return found if found and "pancakes" in found["what"].casefold() else None


def _write(what: str, path: str, outputs: Sequence[str]) -> str | tuple[PlannedCall, ...]:
    """Writes the file and reads it, so that the answer reports its content."""
    heading = what.removeprefix("a ").removeprefix("the ").capitalize()
    content = "\n".join([f"# {heading}", "", *(f"- {line}" for line in _PANCAKES), ""])
    match list(outputs):
        case []:
            return (PlannedCall("write_file", {"path": path, "content": content}),)
        case [_]:
            return (PlannedCall("read_file", {"path": path}),)
        case [_, read, *_] if found := [line[2:] for line in _LINE.findall(read) if line.startswith("- ")]:
            return f"I wrote {what} to {path} and read it again. It lists {', '.join(found)}."
        case _:
            return f"I could not write {path}: {' '.join(outputs)}"


def _count(path: str, outputs: Sequence[str]) -> str | tuple[PlannedCall, ...]:
    if not outputs:
        return (PlannedCall("run_command", {"command": f"wc -w < {shlex.quote(path)}"}),)
    counted = _COUNTED.search(outputs[0])
    return f"{path} has {counted[1]} words." if counted else f"I could not count the words of {path}: {outputs[0]}"


def summarise(messages: Sequence[ChatMessage]) -> str | None:
    """Returns the first line and the last ones, shortened; None if no summary is asked for."""
    instructions = [message.content for message in messages if message.role in ("system", "developer")]
    if not any(_SUMMARISE.match(text[:_LINE_CHARACTERS]) for text in [*instructions, messages[-1].content]):
        return None
    text = "\n".join(message.content for message in messages if message.role not in ("system", "developer"))
    lines = [line.strip(" \t-*#>")[:_LINE_CHARACTERS] for line in text.splitlines()]
    chosen = [line for line in lines if line and not _SUMMARISE.match(line)]
    return "\n".join([*chosen[:1], *chosen[1:][1 - _LINES :]]) or "There is nothing to summarise."
