"""What is in the folders, against the steps that are rows, what the chat shows, and what was told."""

import os
import subprocess
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
from psycopg.rows import dict_row

from backend.conversation.model_input.history import UNKNOWN_OUTCOME
from tests.chaos.agents.script import ASKED_INSIDE, CODER, done, token_in, token_of
from tests.chatkit_client import ChatKit

Row = dict[str, Any]
_NOT_DONE = ("This call was not made", "The person refused this call")
_ENDED = ("The coder was stopped.", "The coder could not finish.", "I came to no end of")


@dataclass
class Work:
    """One call of the coder: its rows, its calls in their order, and their outputs."""

    conversation: str
    rows: list[Row] = field(default_factory=list[Row])

    def of(self, kind: str) -> list[Row]:
        return [row for row in self.rows if row["kind"] == kind]

    @property
    def calls(self) -> list[Row]:
        return [call for row in self.of("step") for call in row["content"]["calls"]]

    @property
    def outputs(self) -> dict[str, Row]:
        return {row["content"]["call_id"]: row for row in self.of("output")}

    @property
    def end(self) -> Row | None:
        return next((row["content"] for row in self.of("end")), None)


class Works:
    """All of them, by token; `directory` is where the workspace has its folders."""

    def __init__(self, admin_url: str, directory: Path) -> None:
        self._directory = directory
        self.by_token: dict[str, Work] = {}
        with psycopg.connect(admin_url) as connection, connection.cursor(row_factory=dict_row) as cursor:
            rows = cursor.execute("SELECT * FROM agent_steps ORDER BY run_id, seq").fetchall()
            asked = cursor.execute("SELECT key, call, decision, agent FROM approvals").fetchall()
        approved = {row["key"] for row in asked if row["decision"] == "approved"}
        self._refused = [
            token_of(row["call"]["arguments"])
            for row in asked
            if row["call"]["name"] == CODER and row["key"] not in approved
        ]
        inside = [row for row in asked if row["agent"] is not None]
        self._unallowed = {_token_inside(row) for row in inside if row["decision"] != "approved"}
        self._told_as_refused = {_token_inside(row) for row in inside if row["decision"] == "refused"}
        self.asked = ", ".join(f"{count} {how}" for how, count in Counter(row["decision"] for row in inside).items())
        tokens: dict[tuple[str, str], str] = {}
        for row in rows:
            key = row["run_id"], row["call_id"]
            if row["kind"] == "task":
                tokens[key] = row["content"]["task"].split(",")[0]
            work = self.by_token.setdefault(tokens[key], Work(row["conversation_id"]))
            work.rows.append(row)
        self._effects = {token: self._of_folder(token, work.conversation) for token, work in self.by_token.items()}

    def problems(self, told: dict[str, set[str]], finished: set[str]) -> Iterator[str]:
        for token, work in self.by_token.items():
            yield from (f"{token}: {problem}" for problem in self._of_rows(work))
            yield from (f"{token}: {problem}" for problem in self._of_effects(work, self._effects[token]))
        for token, outputs in told.items():
            for output in outputs:
                yield from (f"{token}: {problem}" for problem in self._of_told(token, output))
        for token in finished:
            wanted = {call["name"] for call in self.by_token[token].calls}
            if any(count != 1 for name, count in self._effects[token].items() if name in wanted):
                yield f"{token} was told as done, and is {self._effects[token]}"
        yield from (f"{token} began without consent" for token in self._refused if token in self.by_token)
        for token in self._unallowed:
            if self._effects[token][ASKED_INSIDE]:
                yield f"{token} did without consent what its coder asked for"
        known = {path.name.split(".")[0] for path in self._directory.glob("*/*/t*.*")}
        yield from (f"{token} has files and no rows" for token in known - self.by_token.keys())

    def _of_rows(self, work: Work) -> Iterator[str]:
        kinds = [row["kind"] for row in work.rows]
        if kinds[0] != "task" or kinds.count("task") != 1 or "end" in kinds[:-1]:
            yield f"its rows are {kinds}"
        answered = Counter(row["content"]["call_id"] for row in work.of("output"))
        made = {call["call_id"] for call in work.calls}
        if answered and (max(answered.values()) > 1 or answered.keys() - made):
            yield f"its outputs are {answered} of the calls {made}"
        if work.end is not None and answered.keys() != made:
            yield f"it has ended, and {made - answered.keys()} have no output"

    def _of_effects(self, work: Work, effects: dict[str, int]) -> Iterator[str]:
        """Each call acts once where its output says so, not at all where that says so, and else once or not at all."""
        made = {call["name"]: call["call_id"] for call in work.calls}
        for name, count in effects.items():
            row = work.outputs.get(made.get(name, ""))
            output = row["content"]["output"] if row else None
            if count > 1 or (name not in made and count):
                yield f"{name} acted {count} times, and was wanted {list(made).count(name)} times"
            elif row and (row["details"] or {}).get("ok") and row["details"].get("exit_code", 0) == 0 and count != 1:
                yield f"{name} is told as {output!r} and acted {count} times"
            elif output and output.startswith(_NOT_DONE) and count:
                yield f"{name} is told as not made and acted"

    def _of_told(self, token: str, output: str) -> Iterator[str]:
        work = self.by_token.get(token)
        end = work.end if work else None
        if output.startswith(UNKNOWN_OUTCOME):
            if work is not None:
                unanswered = [call["name"] for call in work.calls if call["call_id"] not in work.outputs]
                refused = ASKED_INSIDE in unanswered and token in self._told_as_refused
                unknown = len(unanswered) - refused
                if output.count("\n- ") - output.count("\n- none") != len(work.calls):
                    yield f"of {len(work.calls)} calls was told {output!r}"
                if output.count("outcome unknown") != unknown:
                    yield f"{unknown} calls have no output, and told was {output!r}"
        elif output.startswith((done(token), *_ENDED)):
            if end is None or end["output"] != output:
                yield f"told was {output!r} and it ended as {end}"
        elif output.startswith(("This call was not made", "The person ")):
            if work is not None:
                yield f"told was {output!r}, and it began"
        else:
            yield f"told was {output!r}"

    async def shown(self, chat: ChatKit) -> list[str]:
        """What each workflow in the chats shows, against the rows."""
        found: list[str] = []
        for conversation in {work.conversation for work in self.by_token.values()}:
            for item in await chat.items(conversation):
                if item["type"] == "workflow" and item["workflow"]["type"] == "custom":
                    found += self._of_workflow(item["workflow"])
        return found

    def _of_workflow(self, workflow: Row) -> Iterator[str]:
        first, *tasks = workflow["tasks"]
        token = first["title"].removeprefix("Coder: ").split(",")[0]
        work, titles = self.by_token[token], [task["title"] for task in tasks]
        right = [row for row in work.of("output") if (row["details"] or {}).get("ok")]
        shown = [title for title in titles if title.startswith(_DONE)]
        if len(titles) != len(work.calls) or len(shown) != len(right):
            yield f"{token} shows {titles} and has {len(work.calls)} calls, of which {len(right)} went well"
        summary = workflow["summary"]["title"] if workflow.get("summary") else ""
        if (work.end is None) != (summary == "Coder: did not finish") or "loading" in str(workflow):
            yield f"{token} shows {summary!r} and ended as {work.end}: {workflow}"

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


def _token_inside(approval: Row) -> str:
    return token_in(approval["call"]["arguments"])


_DONE = ("Wrote ", "Ran ", "Changed ", "Read ", "Saved a version")


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
