"""What is in the folders, against the runs of coders, what the chat shows, and what was told."""

import os
import subprocess
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.chaos.agents.script import ASKED_INSIDE, done, token_of
from tests.chaos.checks.stored import ENDED, Stored
from tests.chatkit_client import ChatKit

Row = dict[str, Any]
_NOT_BEGUN = ("requested", "awaiting_approval", "approved", "rejected", "not_made")
_READ = "\n\nIt has read what the person wrote while it worked."
_UNKNOWN = "The outcome of this call is unknown"
_NOT_MADE = ("This call was not made", "The person refused this call")
_DONE = ("Wrote ", "Ran ", "Changed ", "Read ", "Saved a version")


@dataclass(frozen=True)
class Work:
    """A call that started a coder, the coder's run if it began, and the calls of that in their order."""

    call: Row
    run: Row | None
    calls: Sequence[Row]

    @property
    def status(self) -> str:
        return self.run["status"] if self.run else "not begun"

    @property
    def done(self) -> list[Row]:
        return [call for call in self.calls if call["state"] == "done" and (call["details"] or {}).get("ok", True)]


class Works:
    """All of them, by token; `directory` is where the workspace has its folders."""

    def __init__(self, stored: Stored, directory: Path, *, asks: bool) -> None:
        self._directory, self._asks = directory, asks
        self.by_token = {token_of(call["arguments"]): Work(call, *stored.agent_of(call)) for call in stored.assignments}
        self._effects = {
            token: self._of_folder(token, work.call["conversation_id"]) for token, work in self.by_token.items()
        }
        inside = [call for work in self.by_token.values() for call in work.calls if call["approval_seq"] is not None]
        counted = Counter("approved" if _is_approved(call) else call["reason"] or call["state"] for call in inside)
        self.asked = ", ".join(f"{count} {how}" for how, count in counted.items())

    def problems(self, told: dict[str, set[str]], finished: set[str]) -> Iterator[str]:
        for token, work in self.by_token.items():
            yield from (f"{token}: {problem}" for problem in self._of_calls(token, work))
            for output in told[token]:
                yield from (f"{token}: {problem}" for problem in _of_told(token, work, output))
        for token in finished:
            wanted = {call["tool"] for call in self.by_token[token].calls}
            if any(count != 1 for name, count in self._effects[token].items() if name in wanted):
                yield f"{token} was told as done, and is {self._effects[token]}"
        known = {path.name.split(".")[0] for path in self._directory.glob("*/*/t*.*")}
        yield from (f"{token} has files and no rows" for token in (known | told.keys()) - self.by_token.keys())

    def _of_calls(self, token: str, work: Work) -> Iterator[str]:
        """Each call acts once where it is done, not at all where it did not begin, and else once or not at all."""
        if work.run is not None and (work.call["state"] == "rejected" or (self._asks and not _is_approved(work.call))):
            yield f"it began without approval: {work.call['state']}"
        if work.status == "completed" and any(
            call["state"] not in ("done", "failed", "rejected") for call in work.calls
        ):
            yield f"it is completed, and its calls are {[call['state'] for call in work.calls]}"
        calls = {call["tool"]: call for call in work.calls}
        for name, count in self._effects[token].items():
            call = calls.get(name)
            if count and (call is None or call["state"] in _NOT_BEGUN):
                yield f"{name} acted {count} times, and is {call and call['state']}"
            elif count > 1:
                yield f"{name} acted {count} times"
            elif call in work.done and (call["details"] or {}).get("exit_code", 0) == 0 and count != 1:
                yield f"{name} is done, and acted {count} times"
            if count and name == ASKED_INSIDE and call and not _is_approved(call):
                yield f"{name} acted without approval"

    async def shown(self, chat: ChatKit) -> list[str]:
        """What each workflow in the chats shows, against the rows."""
        found: list[str] = []
        for conversation in {work.call["conversation_id"] for work in self.by_token.values()}:
            for item in await chat.items(conversation):
                if item["type"] == "workflow" and item["workflow"]["type"] == "custom":
                    found += self._of_workflow(item["workflow"])
        return found

    def _of_workflow(self, workflow: Row) -> Iterator[str]:
        first, *steps = workflow["tasks"]
        token = first["title"].removeprefix("Coder: ").split(",")[0]
        work, titles = self.by_token[token], [step["title"] for step in steps]
        shown = [title for title in titles if title.startswith(_DONE)]
        if len(titles) != len(work.calls) or len(shown) != len(work.done):
            yield f"{token} shows {titles} and has {len(work.calls)} calls, of which {len(work.done)} went well"
        summary = workflow["summary"]["title"] if workflow.get("summary") else ""
        outcome = {"cancelled": ", stopped", "failed": ", failed", "interrupted": ", interrupted"}.get(work.status, "")
        if bool(summary) != (work.status in ENDED) or not summary.endswith(outcome) or "loading" in str(workflow):
            yield f"{token} shows {summary!r} and is {work.status}: {workflow}"

    def _of_folder(self, token: str, conversation: str) -> dict[str, int]:
        """How often each of the calls of a token has acted, as the files say; reading leaves nothing."""
        [folder] = [*self._directory.glob(f"*/{conversation}"), None][:1]
        if folder is None:
            return dict.fromkeys(("write_file", "run_command", "edit_file", "run_python", "commit"), 0)

        def text(name: str) -> str:
            file = folder / f"{token}.{name}"
            return file.read_text() if file.exists() else ""

        return {
            "write_file": int(text("txt") in ("as it was written\n", "as it was changed\n")),
            "run_command": text("sh.log").count("ran\n"),
            "edit_file": int("changed" in text("txt")),
            "run_python": text("py.log").count("ran\n"),
            "commit": _messages(folder).count(token),
        }


def _is_approved(call: Row) -> bool:
    return call["decision_seq"] is not None and call["state"] != "rejected"


def _of_told(token: str, work: Work, output: str) -> Iterator[str]:
    """What the assistant's model read of a coder is its stored output, else what became of the run."""
    stored = work.call["output"]
    if stored is not None and stored != output:
        yield f"told was {output!r}, and stored is {stored!r}"
    text, _, _ = output.partition("\n\nFiles changed:")
    text = text.removesuffix(_READ)
    if text.startswith(_UNKNOWN):
        unknown = sum(call["output"] is None for call in work.calls)
        if work.status not in ("interrupted", "not begun") or text.count(": outcome unknown") != unknown:
            yield f"it is {work.status} with {unknown} unknown calls, and told was {output!r}"
    elif text.startswith(_NOT_MADE):
        if work.run is not None:
            yield f"told was {output!r}, and it began"
    elif text == done(token) or text.startswith("I came to no end of"):
        if work.status != "completed":
            yield f"told was {output!r}, and it is {work.status}"
    elif text.startswith("The coder was stopped."):
        if work.status != "cancelled":
            yield f"told was {output!r}, and it is {work.status}"
    elif not text.startswith("The coder could not finish.") or work.status != "failed":
        yield f"told was {output!r}, and it is {work.status}"


def _messages(folder: Path) -> Sequence[str]:
    if not (folder / ".git").exists():
        return []
    command = ["git", "-c", "safe.directory=*", "-C", str(folder), "log", "--format=%s"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 or "does not have any commits" in done.stderr, done.stderr
    return done.stdout.split()


def processes_of(mark: str) -> list[str]:
    """The processes with a mark in their command line."""
    found: list[str] = []
    for number in filter(str.isdecimal, os.listdir("/proc")):
        try:
            words = Path(f"/proc/{number}/cmdline").read_bytes()
        except OSError:
            continue
        if mark.encode() in words:
            found.append(f"{number}: {words!r}")
    return found
