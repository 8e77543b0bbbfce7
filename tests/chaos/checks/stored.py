"""What the database holds afterwards, against what clients were told."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import psycopg
from psycopg.rows import dict_row

from tests.chaos.agents.script import CODER
from tests.chaos.checks.task_rows import TaskRows
from tests.chaos.record import Record

Row = dict[str, Any]
_OPEN = ("requested", "awaiting_approval", "approved", "running")
ENDED = ("completed", "failed", "cancelled", "interrupted")


class Stored:
    """All rows of all users, as a superuser reads them. `runs` are those of the assistant, by id."""

    def __init__(self, admin_url: str) -> None:
        with psycopg.connect(admin_url) as connection, connection.cursor(row_factory=dict_row) as cursor:

            def read(sql: str) -> list[Row]:
                return cursor.execute(sql.encode()).fetchall()

            self._runs = {row["id"]: row for row in read("SELECT * FROM runs WHERE conversation_id IS NOT NULL")}
            self._entries = read("SELECT e.*, r.active FROM entries e JOIN runs r ON r.id = e.run_id ORDER BY e.seq")
            self._calls = read("SELECT * FROM tool_calls ORDER BY seq")
            self._turns = read("SELECT * FROM model_turns")
        self._tasks = TaskRows(admin_url)
        self.calls = self._tasks.calls
        self.runs = {id: run for id, run in self._runs.items() if run["parent_call_id"] is None}

    def unread(self, conversation_id: str) -> set[str]:
        """The ids of messages to runs of the shown path that no model has read."""
        return {
            row["id"]
            for row in self._entries
            if row["conversation_id"] == conversation_id and row["seq"] is None and row["active"]
        }

    def shown_messages(self, conversation_id: str) -> set[str]:
        """The ids of the user's messages on the shown path."""
        return {
            row["id"]
            for row in self._entries
            if row["conversation_id"] == conversation_id
            and row["kind"] == "user_message"
            and row["seq"] is not None
            and row["active"]
            and row["run_id"] in self.runs
        }

    def problems(self, record: Record) -> Iterator[str]:
        yield from self._messages(record)
        yield from self._inputs(record)
        yield from self._decisions(record)
        yield from self._ends(record)
        yield from self._order()
        yield from self._tasks.problems(record)
        yield from self._made()

    def _messages(self, record: Record) -> Iterator[str]:
        texts = {row["id"]: row["text"] for row in self._entries if row["kind"] == "user_message"}
        for id, text in record.messages.items():
            if texts.get(id) != text:
                yield f"message {id} was acknowledged as {text!r} and is {texts.get(id)!r}"
        answers = {row["id"]: row["text"] for row in self._entries if row["kind"] == "assistant_message"}
        for id, text in record.shown.items():
            if answers.get(id) != text:
                yield f"answer {id} was shown as {text!r} and is {answers.get(id)!r}"
        sent = Counter(texts.values())
        yield from (f"{text!r} was sent with a key, and is there twice" for text in record.sent_once if sent[text] > 1)

    def _inputs(self, record: Record) -> Iterator[str]:
        """A message to a run is read, or it is unsent with a run that could not read it."""
        there = {row["id"] for row in self._entries}
        for id, text in record.inputs.items():
            if id not in there and text not in record.may_be_dropped and not self._is_stopped(record.sent_to[text]):
                yield f"message {id} was acknowledged as {text!r} and is not there"
        for row in self._entries:
            if row["seq"] is None and self._runs[row["run_id"]]["status"] == "completed":
                yield f"message {row['id']} is unread, and its run is completed"

    def _is_stopped(self, run_id: str) -> bool:
        """Whether the run, or one that answered its follow-ups, was stopped: that drops what was queued."""
        run = self._runs[run_id]
        later = (one for one in self._runs.values() if one["conversation_id"] == run["conversation_id"])
        return any(one["status"] == "cancelled" and one["seq"] >= run["seq"] for one in later)

    def _decisions(self, record: Record) -> Iterator[str]:
        asked = {row["id"]: row for row in self._calls if row["approval_seq"] is not None}
        for id, approved in record.decisions.items():
            row = asked.get(id)
            if row is None or row["decision_seq"] is None or (row["state"] != "rejected") != approved:
                yield f"{id} was acknowledged as {approved} and is {row and row['state']}"

    def _ends(self, record: Record) -> Iterator[str]:
        open_approvals = Counter(
            self._runs[row["run_id"]]["top_run_id"] for row in self._calls if row["state"] == "awaiting_approval"
        )
        for id, run in self._runs.items():
            if run["status"] == "running":
                yield f"{id} is running, and no process executes it"
            if run["parent_call_id"] is None and (run["status"] == "waiting") != (open_approvals[id] > 0):
                yield f"{id} is {run['status']} with {open_approvals[id]} open approvals"
            if run["status"] in ENDED and run["end_seq"] is None:
                yield f"{id} has ended without a number"
        yield from self._left_open()
        for id, (_, text) in record.interactions.items():
            if id not in self.runs:
                yield f"{id} was acknowledged for {text!r} and is not there"
        for id in record.answers:
            if self._runs[id]["status"] != "completed":
                yield f"{id} was told as completed and is {self._runs[id]['status']}"

    def _left_open(self) -> Iterator[str]:
        for row in self._calls:
            if row["state"] in _OPEN and self._runs[row["run_id"]]["status"] in ENDED:
                yield f"the call {row['id']} is {row['state']} in a run that has ended"
        for row in self._entries:
            if not row["complete"] and self._runs[row["run_id"]]["status"] in ENDED:
                yield f"the entry {row['id']} grows in a run that has ended"

    def _order(self) -> Iterator[str]:
        """Nothing of a tree of runs has a number after its end, and no number is given twice."""
        numbers = Counter[int]()
        for row in self._calls:
            moments = [row[name] for name in ("seq", "approval_seq", "decision_seq", "result_seq") if row[name]]
            numbers.update(moments)
            yield from self._after_end(row, max(moments))
        for row in self._entries:
            moments = [row[name] for name in ("seq", "completion_seq") if row[name]]
            numbers.update(moments)
            if moments and row["kind"] != "change":
                yield from self._after_end(row, max(moments))
        numbers.update(row["seq"] for row in self._turns)
        numbers.update(run["end_seq"] for run in self._runs.values() if run["end_seq"])
        yield from (f"the number {number} is there {count} times" for number, count in numbers.items() if count > 1)

    def _after_end(self, row: Row, number: int) -> Iterator[str]:
        run = self._runs.get(row["run_id"])
        if run and run["end_seq"] is not None and number > run["end_seq"]:
            yield f"{row['id']} has the number {number}, after the end of {run['id']} at {run['end_seq']}"

    def _made(self) -> Iterator[str]:
        """Whether each call of a task tool was made is what its state says. A message that is answered again has calls
        with the same keys: one that was not made may have been made then.
        """
        made = Counter(row["idempotency_key"] for row in self.calls)
        begun = {row["idempotency_key"] for row in self._calls if row["state"] in ("running", *_BEGUN)}
        for row in self._calls:
            if row["tool"] not in _TASK_CHANGES:
                continue
            key, state = row["idempotency_key"], row["state"]
            if made[key] and key not in begun:
                yield f"the call {row['id']} is {state} ({row['reason']}), and was made"
            elif state == "done" and (row["output"] or "").startswith("{") and made[key] != 1:
                yield f"the call {row['id']} is done, and was made {made[key]} times"

    @property
    def assignments(self) -> list[Row]:
        """The calls of the coder."""
        return [row for row in self._calls if row["tool"] == CODER]

    def agent_of(self, call: Row) -> tuple[Row | None, list[Row]]:
        """The run that a call of an agent has started, if it did, and the calls of that."""
        of_call = (call["run_id"], call["id"])
        runs = [run for run in self._runs.values() if (run["parent_run_id"], run["parent_call_id"]) == of_call]
        return (runs[0] if runs else None), [row for row in self._calls for run in runs if row["run_id"] == run["id"]]


_BEGUN = ("done", "failed", "unknown")
_TASK_CHANGES = ("add_task", "complete_task", "update_task", "delete_task")
