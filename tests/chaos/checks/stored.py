"""What the database holds afterwards, against what clients were told."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import psycopg
from psycopg.rows import dict_row

from backend.conversation.model_input.history import NOT_MADE, UNKNOWN_OUTCOME
from backend.turn.waiting.decisions import INSTEAD
from tests.chaos.agents.script import CODER
from tests.chaos.checks.core_rows import CoreRows
from tests.chaos.checks.task_rows import TaskRows
from tests.chaos.record import Record
from tests.chatkit_client import text_of
from tests.support.stored import HAS_NEW_CORE

Row = dict[str, Any]
_UNREAD_OF = {"failed", "interrupted"}  # outcomes of runs that leave what they did not read


class _OldRows:
    """All rows of all people, as a superuser reads them."""

    def __init__(self, admin_url: str) -> None:
        with psycopg.connect(admin_url) as connection, connection.cursor(row_factory=dict_row) as cursor:

            def read(sql: str) -> list[Row]:
                return cursor.execute(sql.encode()).fetchall()

            self.messages = read("SELECT id, kind, run_id, superseded_by, item FROM messages ORDER BY seq")
            self.runs = {row["id"]: row for row in read("SELECT * FROM runs WHERE conversation_id IS NOT NULL")}
            self.approvals = read("SELECT * FROM approvals ORDER BY created_at")
            self.inputs = read("SELECT * FROM run_inputs ORDER BY id")
        self._tasks = TaskRows(admin_url)
        self.calls = self._tasks.calls

    def unread(self, conversation_id: str) -> set[str]:
        """The ids of messages that no model has read."""
        return {
            row["id"]
            for row in self.inputs
            if row["conversation_id"] == conversation_id and row["taken_at"] is None and row["dropped_at"] is None
        }

    def shown_messages(self, conversation_id: str) -> set[str]:
        """The ids of the user's messages on the shown path."""
        return {
            row["id"]
            for row in self.messages
            if row["item"].get("thread_id") == conversation_id
            and row["kind"] == "user_message"
            and row["superseded_by"] is None
        }

    def problems(self, record: Record) -> Iterator[str]:
        yield from self._messages(record)
        yield from self._inputs(record)
        yield from self._decisions(record)
        yield from self._runs(record)
        yield from self._approved_calls()
        yield from self._tasks.problems(record)

    def _messages(self, record: Record) -> Iterator[str]:
        ids = Counter(row["id"] for row in self.messages)
        yield from (f"two items are {id}" for id, count in ids.items() if count > 1)
        texts = {row["id"]: text_of(row["item"]) for row in self.messages if row["kind"] == "user_message"}
        for id, text in record.messages.items():
            if texts.get(id) != text:
                yield f"message {id} was acknowledged as {text!r} and is {texts.get(id)!r}"
        answers = {row["id"]: text_of(row["item"]) for row in self.messages if row["kind"] == "assistant_message"}
        for id, text in record.shown.items():
            if answers.get(id) != text:
                yield f"answer {id} was shown as {text!r} and is {answers.get(id)!r}"
        said = Counter([*texts.values(), *(row["said"]["text"] for row in self.inputs if row["taken_at"] is None)])
        yield from (f"{text!r} was sent with a key, and is there twice" for text in record.sent_once if said[text] > 1)

    def _inputs(self, record: Record) -> Iterator[str]:
        """Each is read once, or dropped where that is told, or unsent with a run that could not read it.

        One that waited, and was ended by a message in its place, could not either.
        """
        rows, read = {row["id"]: row for row in self.inputs}, Counter(row["id"] for row in self.messages)
        instead = {row["run_id"] for row in self.approvals if row["reason"] == INSTEAD}
        for id, text in record.inputs.items():
            if id not in rows:
                yield f"input {id} was acknowledged as {text!r} and is not there"
        for id, row in rows.items():
            run = self.runs[row["run_id"]]
            if (row["taken_at"] is not None) != (read[id] == 1):
                yield f"input {id} is taken at {row['taken_at']} and read {read[id]} times"
            if row["taken_at"] is not None and row["dropped_at"] is not None:
                yield f"input {id} is read and dropped"
            if row["dropped_at"] is not None and run["outcome"] != "cancelled" and not self._overtaken(row):
                yield f"input {id} is dropped, of a run that is {run['status']}, {run['outcome']}"
            is_left = row["taken_at"] is None and row["dropped_at"] is None
            if is_left and run["status"] == "ended" and run["outcome"] not in _UNREAD_OF and run["id"] not in instead:
                yield f"input {id} is left of a run that has ended as {run['outcome']}"

    def _overtaken(self, dropped: Row) -> bool:
        return dropped["mode"] == "follow_up" and any(
            row["run_id"] == dropped["run_id"] and row["mode"] == "steer" and row["id"] != dropped["id"]
            for row in self.inputs
        )

    def _decisions(self, record: Record) -> Iterator[str]:
        decided = {row["id"]: row["decision"] for row in self.approvals}
        for id, approved in record.decisions.items():
            if decided.get(id) != ("approved" if approved else "refused"):
                yield f"{id} was acknowledged as {approved} and is {decided.get(id)}"

    def _runs(self, record: Record) -> Iterator[str]:
        open_approvals = Counter(row["run_id"] for row in self.approvals if row["decision"] is None)
        for id, run in self.runs.items():
            if run["status"] == "running":
                yield f"{id} is running, and nobody answers"
            if (run["status"] == "waiting") != (open_approvals[id] > 0):
                yield f"{id} is {run['status']} with {open_approvals[id]} open approvals"
        for id, (_, text) in record.interactions.items():
            if id not in self.runs:
                yield f"{id} was acknowledged for {text!r} and is not there"
        for id in record.answers:
            if self.runs[id]["outcome"] != "completed":
                yield f"{id} was told as completed and is {self.runs[id]['outcome']}"

    def _approved_calls(self) -> Iterator[str]:
        """By the output of each: made once, or not at all, or once or not at all where that is what it says."""
        made = Counter(row["idempotency_key"] for row in self.calls)
        approved = {row["key"] for row in self.approvals if row["decision"] == "approved"}
        outputs = self._outputs()
        for row in self.approvals:
            count, run = made[row["key"]], self.runs[row["run_id"]]
            if row["call"]["name"] == CODER or row["agent"] is not None:
                continue  # which its own steps tell of
            if row["key"] not in approved:
                if count:
                    yield f"the call of {row['id']} was {row['decision'] or 'not decided'}, and made"
                continue
            if row["decision"] != "approved":
                continue  # asked again in another attempt, which decided
            output = outputs.get((row["run_id"], row["call"]["call_id"]))
            if output is None:
                if run["outcome"] not in ("interrupted", "failed"):
                    yield f"the call of {row['id']} has no output in a run that is {run['outcome']}"
            elif output.startswith("{") and count != 1:
                yield f"the call of {row['id']} was made {count} times, and says {output[:80]!r}"
            elif not output.startswith("{") and output not in (NOT_MADE, UNKNOWN_OUTCOME) and "task" not in output:
                yield f"the call of {row['id']} says {output!r}"

    def _outputs(self) -> dict[tuple[str, str], str]:
        """By run and call."""
        found: dict[tuple[str, str], str] = {}
        for row in self.messages:
            match row["item"].get("content"):
                case {"kind": "tool_output", "output": {"call_id": call_id, "output": output}}:
                    found[row["run_id"], call_id] = _plain(output)
                case _:
                    pass
        return found


def _plain(output: Any) -> str:
    parts: Sequence[Any] = output if isinstance(output, list) else [{"text": output}]
    return "\n".join(part.get("text", "") for part in parts)


AnyStored = CoreRows | _OldRows
Stored = CoreRows if HAS_NEW_CORE else _OldRows
