"""Checks the workspace's files, the runs of coders, the workflow cards and what models read against one another."""

import subprocess
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.chaos.agents.model_script import APPROVAL_TOOL, parse_token, render_report
from tests.chaos.checks.stored_rows import ENDED, StoredRows
from tests.chatkit_client import ChatKit

Row = dict[str, Any]
_NOT_STARTED = ("requested", "awaiting_approval", "approved", "rejected", "not_made")
_READ_MESSAGES = "\n\nIt has read what the person wrote while it worked."
_UNKNOWN = "The outcome of this call is unknown"
_NOT_MADE = ("This call was not made", "The person refused this call")
_SUCCESS_TITLES = ("Wrote ", "Ran ", "Changed ", "Read ", "Saved a version")


@dataclass(frozen=True)
class Assignment:
    """A call of the coder tool, the coder's run if it was started, and the calls of that run in order."""

    call: Row
    run: Row | None
    calls: Sequence[Row]

    @property
    def status(self) -> str:
        return self.run["status"] if self.run else "not started"

    @property
    def successful_calls(self) -> list[Row]:
        return [call for call in self.calls if call["state"] == "done" and (call["details"] or {}).get("ok", True)]


class AssignmentChecks:
    """`assignments` are by token; `directory` contains the folders of the workspace."""

    def __init__(self, rows: StoredRows, directory: Path, *, approve_starts: bool) -> None:
        self._directory, self._approve_starts = directory, approve_starts
        self.assignments = {
            parse_token(call["arguments"]): Assignment(call, *rows.find_sub_agent(call))
            for call in rows.list_coder_calls()
        }
        self._effects = {
            token: self._count_effects(token, assignment.call["conversation_id"])
            for token, assignment in self.assignments.items()
        }
        calls = [call for one in self.assignments.values() for call in one.calls if call["approval_seq"] is not None]
        counts = Counter("approved" if _is_approved(call) else call["reason"] or call["state"] for call in calls)
        self.approval_counts = ", ".join(f"{count} {decision}" for decision, count in counts.items())

    def find_problems(self, outputs: dict[str, set[str]], finished: set[str]) -> Iterator[str]:
        """`outputs` are what the assistant's models read, by token; `finished` are the tokens reported as done."""
        for token, assignment in self.assignments.items():
            yield from (f"{token}: {problem}" for problem in self._check_calls(token, assignment))
            for output in outputs[token]:
                yield from (f"{token}: {problem}" for problem in _check_output(token, assignment, output))
        for token in finished:
            tools = {call["tool"] for call in self.assignments[token].calls}
            if any(count != 1 for tool, count in self._effects[token].items() if tool in tools):
                yield f"{token} was reported as done, and its effects are {self._effects[token]}"
        tokens = {path.name.split(".")[0] for path in self._directory.glob("*/*/t*.*")} | outputs.keys()
        yield from (f"{token} has files and no rows" for token in tokens - self.assignments.keys())

    def _check_calls(self, token: str, assignment: Assignment) -> Iterator[str]:
        """A call acted once if it is done, never if it was not started, and otherwise once or never."""
        state = assignment.call["state"]
        needs_approval = self._approve_starts and not _is_approved(assignment.call)
        if assignment.run is not None and (state == "rejected" or needs_approval):
            yield f"it started without approval: {state}"
        states = [call["state"] for call in assignment.calls]
        if assignment.status == "completed" and not {*states} <= {"done", "failed", "rejected"}:
            yield f"it is completed, and its calls are {states}"
        calls = {call["tool"]: call for call in assignment.calls}
        for tool, count in self._effects[token].items():
            call = calls.get(tool)
            if count and (call is None or call["state"] in _NOT_STARTED):
                yield f"{tool} acted {count} times, and is {call and call['state']}"
            elif count > 1:
                yield f"{tool} acted {count} times"
            elif (
                call in assignment.successful_calls and (call["details"] or {}).get("exit_code", 0) == 0 and count != 1
            ):
                yield f"{tool} is done, and acted {count} times"
            if count and tool == APPROVAL_TOOL and call and not _is_approved(call):
                yield f"{tool} acted without approval"

    async def find_workflow_problems(self, chat: ChatKit) -> list[str]:
        """Checks each agent's workflow in ChatKit against the rows."""
        problems: list[str] = []
        for conversation_id in {assignment.call["conversation_id"] for assignment in self.assignments.values()}:
            for item in await chat.items(conversation_id):
                if item["type"] == "workflow" and item["workflow"]["type"] == "custom":
                    problems += self._check_workflow(item["workflow"])
        return problems

    def _check_workflow(self, workflow: Row) -> Iterator[str]:
        first, *steps = workflow["tasks"]
        token = first["title"].removeprefix("Coder: ").split(",")[0]
        assignment, titles = self.assignments[token], [step["title"] for step in steps]
        calls, successful = len(assignment.calls), len(assignment.successful_calls)
        if len(titles) != calls or sum(title.startswith(_SUCCESS_TITLES) for title in titles) != successful:
            yield f"{token} shows {titles} and has {calls} calls, of which {successful} succeeded"
        summary = workflow["summary"]["title"] if workflow.get("summary") else ""
        suffixes = {"cancelled": ", stopped", "failed": ", failed", "interrupted": ", interrupted"}
        has_suffix = summary.endswith(suffixes.get(assignment.status, ""))
        if bool(summary) != (assignment.status in ENDED) or not has_suffix or "loading" in str(workflow):
            yield f"{token} shows {summary!r} and is {assignment.status}: {workflow}"

    def _count_effects(self, token: str, conversation_id: str) -> dict[str, int]:
        """Returns how often each call of an assignment has acted according to the files; reading has no effect."""
        folder = next(self._directory.glob(f"*/{conversation_id}"), None)
        if folder is None:
            return dict.fromkeys(("write_file", "run_command", "edit_file", "run_python", "commit"), 0)

        def read(extension: str) -> str:
            file = folder / f"{token}.{extension}"
            return file.read_text() if file.exists() else ""

        return {
            "write_file": int(read("txt") in ("as it was written\n", "as it was changed\n")),
            "run_command": read("sh.log").count("ran\n"),
            "edit_file": int("changed" in read("txt")),
            "run_python": read("py.log").count("ran\n"),
            "commit": _read_commit_messages(folder).count(token),
        }


def _is_approved(call: Row) -> bool:
    return call["decision_seq"] is not None and call["state"] != "rejected"


def _check_output(token: str, assignment: Assignment, output: str) -> Iterator[str]:
    """The output that the assistant's model read is the stored one, or else matches what became of the run."""
    stored, status = assignment.call["output"], assignment.status
    if stored is not None and stored != output:
        yield f"the model read {output!r}, and {stored!r} is stored"
    text, _, _ = output.partition("\n\nFiles changed:")
    text = text.removesuffix(_READ_MESSAGES)
    if text.startswith(_UNKNOWN):
        unknown = sum(call["output"] is None for call in assignment.calls)
        if status not in ("interrupted", "not started") or text.count(": outcome unknown") != unknown:
            yield f"it is {status} with {unknown} unknown calls, and the model read {output!r}"
        return
    if text.startswith(_NOT_MADE):
        matches = assignment.run is None
    elif text == render_report(token) or text.startswith(f"I could not finish {token}:"):
        matches = status == "completed"
    elif text.startswith("The coder was stopped."):
        matches = status == "cancelled"
    else:
        matches = text.startswith("The coder could not finish.") and status == "failed"
    if not matches:
        yield f"it is {status}, and the model read {output!r}"


def _read_commit_messages(folder: Path) -> Sequence[str]:
    if not (folder / ".git").exists():
        return []
    command = ["git", "-c", "safe.directory=*", "-C", str(folder), "log", "--format=%s"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert result.returncode == 0 or "does not have any commits" in result.stderr, result.stderr
    return result.stdout.split()
