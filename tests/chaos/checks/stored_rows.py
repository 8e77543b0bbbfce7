"""Checks the rows of the database against what was acknowledged to clients, and for consistency."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import psycopg
from psycopg.rows import dict_row

from tests.chaos.agents.model_script import CODER_TOOL
from tests.chaos.client_record import ClientRecord, ExpectedTask

Row = dict[str, Any]
ENDED = ("completed", "failed", "cancelled", "interrupted")
_OPEN_CALLS = ("requested", "awaiting_approval", "approved", "running")
_STARTED_CALLS = ("running", "done", "failed", "unknown")
_TASK_CHANGES = ("add_task", "complete_task", "update_task", "delete_task")
_OPERATIONS: dict[ExpectedTask, set[str]] = {
    "pending": {"add"},
    "completed": {"add", "complete"},
    "postponed": {"add", "update"},
    "deleted": {"add", "delete"},
}


class StoredRows:
    """The rows of all users, read as a superuser.

    `runs` are those of the assistant, by id; `task_calls` are the changes that the MCP server has made.
    """

    def __init__(self, admin_url: str) -> None:
        with psycopg.connect(admin_url) as connection, connection.cursor(row_factory=dict_row) as cursor:

            def read(sql: str) -> list[Row]:
                return cursor.execute(sql.encode()).fetchall()

            self._all_runs = {row["id"]: row for row in read("SELECT * FROM runs WHERE conversation_id IS NOT NULL")}
            self._entries = read("SELECT e.*, r.active FROM entries e JOIN runs r ON r.id = e.run_id ORDER BY e.seq")
            self._calls = read("SELECT * FROM tool_calls ORDER BY seq")
            self._turns = read("SELECT * FROM model_turns")
            self.task_calls = read("SELECT * FROM task_calls ORDER BY id")
            self._tasks = read("SELECT id, title, status, due_on FROM tasks")
            self._task_changes = read(
                "SELECT task_id, before, after, operation, idempotency_key FROM task_changes "
                "JOIN task_calls ON task_calls.id = call_id AND task_calls.user_id = task_changes.user_id"
            )
        self.runs = {id: run for id, run in self._all_runs.items() if run["parent_call_id"] is None}

    def list_unread_inputs(self, conversation_id: str) -> set[str]:
        """Returns the ids of the messages to runs of the active path that no model has read."""
        return {
            row["id"]
            for row in self._entries
            if row["conversation_id"] == conversation_id and row["seq"] is None and row["active"]
        }

    def list_active_messages(self, conversation_id: str) -> set[str]:
        """Returns the ids of the user's messages on the active path."""
        return {
            row["id"]
            for row in self._entries
            if row["conversation_id"] == conversation_id
            and row["kind"] == "user_message"
            and row["seq"] is not None
            and row["active"]
            and row["run_id"] in self.runs
        }

    def list_coder_calls(self) -> list[Row]:
        return [row for row in self._calls if row["tool"] == CODER_TOOL]

    def find_sub_agent(self, call: Row) -> tuple[Row | None, list[Row]]:
        """Returns the run that a call has started, if it did, and the tool calls of that run."""
        of_call = (call["run_id"], call["id"])
        runs = [run for run in self._all_runs.values() if (run["parent_run_id"], run["parent_call_id"]) == of_call]
        return (runs[0] if runs else None), [row for row in self._calls for run in runs if row["run_id"] == run["id"]]

    def find_problems(self, record: ClientRecord) -> list[str]:
        return [
            *self._check_messages(record),
            *self._check_inputs(record),
            *self._check_decisions(record),
            *self._check_runs(record),
            *self._check_open_rows(),
            *self._check_sequence(),
            *self._check_changes_made_once(),
            *self._check_tasks(record),
            *self._check_task_calls(),
        ]

    def _check_messages(self, record: ClientRecord) -> Iterator[str]:
        texts = {row["id"]: row["text"] for row in self._entries if row["kind"] == "user_message"}
        for id, text in record.messages.items():
            if texts.get(id) != text:
                yield f"message {id} was acknowledged as {text!r} and is stored as {texts.get(id)!r}"
        answers = {row["id"]: row["text"] for row in self._entries if row["kind"] == "assistant_message"}
        for id, text in record.chatkit_answers.items():
            if answers.get(id) != text:
                yield f"answer {id} was shown as {text!r} and is stored as {answers.get(id)!r}"
        counts = Counter(texts.values())
        for text in record.keyed_texts:
            if counts[text] > 1:
                yield f"{text!r} was sent with a key and is stored {counts[text]} times"

    def _check_inputs(self, record: ClientRecord) -> Iterator[str]:
        """Steering messages and follow-ups are stored; they are unread only if their run did not complete."""
        stored = {row["id"] for row in self._entries}
        for id, text in record.inputs.items():
            if id not in stored and text not in record.droppable_inputs and not self._is_cancelled(record, text):
                yield f"message {id} was acknowledged as {text!r} and is not stored"
        for row in self._entries:
            if row["seq"] is None and self._all_runs[row["run_id"]]["status"] == "completed":
                yield f"message {row['id']} is unread, and its run is completed"

    def _is_cancelled(self, record: ClientRecord, text: str) -> bool:
        """Whether the run, or one that answered its follow-ups, was cancelled, which drops queued messages."""
        run = self._all_runs[record.input_runs[text]]
        return any(
            later["status"] == "cancelled" and later["seq"] >= run["seq"]
            for later in self._all_runs.values()
            if later["conversation_id"] == run["conversation_id"]
        )

    def _check_decisions(self, record: ClientRecord) -> Iterator[str]:
        approvals = {row["id"]: row for row in self._calls if row["approval_seq"] is not None}
        for id, approved in record.decisions.items():
            row = approvals.get(id)
            if row is None or row["decision_seq"] is None or (row["state"] != "rejected") != approved:
                yield f"decision {id} was acknowledged as {approved} and is stored as {row and row['state']}"

    def _check_runs(self, record: ClientRecord) -> Iterator[str]:
        open_approvals = Counter(
            self._all_runs[row["run_id"]]["top_run_id"] for row in self._calls if row["state"] == "awaiting_approval"
        )
        for id, run in self._all_runs.items():
            if run["status"] == "running":
                yield f"{id} is running, and no process executes it"
            if run["parent_call_id"] is None and (run["status"] == "waiting") != (open_approvals[id] > 0):
                yield f"{id} is {run['status']} with {open_approvals[id]} open approvals"
            if run["status"] in ENDED and run["end_seq"] is None:
                yield f"{id} has ended without a number"
        for id, (_, text) in record.interactions.items():
            if id not in self.runs:
                yield f"{id} was acknowledged for {text!r} and is not stored"
        for id in record.answers:
            if self._all_runs[id]["status"] != "completed":
                yield f"{id} was reported as completed and is {self._all_runs[id]['status']}"

    def _check_open_rows(self) -> Iterator[str]:
        """Runs that have ended have no open calls and no growing entries."""
        for row in self._calls:
            if row["state"] in _OPEN_CALLS and self._all_runs[row["run_id"]]["status"] in ENDED:
                yield f"the call {row['id']} is {row['state']} in a run that has ended"
        for row in self._entries:
            if not row["complete"] and self._all_runs[row["run_id"]]["status"] in ENDED:
                yield f"the entry {row['id']} is incomplete in a run that has ended"

    def _check_sequence(self) -> Iterator[str]:
        """No row of a run or of its sub-agents has a number after the run's end, and no number is used twice."""
        counts = Counter[int]()
        for row in self._calls:
            numbers = [row[name] for name in ("seq", "approval_seq", "decision_seq", "result_seq") if row[name]]
            counts.update(numbers)
            yield from self._check_before_end(row, max(numbers))
        for row in self._entries:
            numbers = [row[name] for name in ("seq", "completion_seq") if row[name]]
            counts.update(numbers)
            if numbers and row["kind"] != "change":
                yield from self._check_before_end(row, max(numbers))
        counts.update(row["seq"] for row in self._turns)
        counts.update(run["end_seq"] for run in self._all_runs.values() if run["end_seq"])
        for number, count in counts.items():
            if count > 1:
                yield f"the number {number} is used {count} times"

    def _check_before_end(self, row: Row, number: int) -> Iterator[str]:
        run = self._all_runs.get(row["run_id"])
        if run and run["end_seq"] is not None and number > run["end_seq"]:
            yield f"{row['id']} has the number {number}, after the end of {run['id']} at {run['end_seq']}"

    def _check_changes_made_once(self) -> Iterator[str]:
        keys = Counter(row["idempotency_key"] for row in self.task_calls)
        yield from (f"the key {key} acted {count} times" for key, count in keys.items() if count > 1)
        titles = Counter((row["after"] or {}).get("title") for row in self._task_changes if row["before"] is None)
        yield from (f"{title!r} was added {count} times" for title, count in titles.items() if count > 1)
        operations = Counter((row["task_id"], row["operation"]) for row in self._task_changes)
        for (task_id, operation), count in operations.items():
            if count > 1:
                yield f"task {task_id}: {operation} {count} times"

    def _check_tasks(self, record: ClientRecord) -> Iterator[str]:
        tasks = {row["title"]: row for row in self._tasks}
        ids = {(row["after"] or {}).get("title"): row["task_id"] for row in self._task_changes if row["before"] is None}
        operations: dict[int, set[str]] = {}
        for row in self._task_changes:
            operations.setdefault(row["task_id"], set()).add(row["operation"])
        for title, expected in record.expected_tasks.items():
            made = operations.get(ids.get(title, 0), set())
            if made != _OPERATIONS[expected] or (title in tasks) != (expected != "deleted"):
                yield f"{title!r} should be {expected}, but its operations are {made}: {tasks.get(title)}"

    def _check_task_calls(self) -> Iterator[str]:
        """The state of each call that changes tasks says whether the MCP server has made the change.

        A retried message repeats its calls with the same keys, so a call that was not made may have been made then.
        """
        made = Counter(row["idempotency_key"] for row in self.task_calls)
        started = {row["idempotency_key"] for row in self._calls if row["state"] in _STARTED_CALLS}
        for row in self._calls:
            if row["tool"] not in _TASK_CHANGES:
                continue
            key, state = row["idempotency_key"], row["state"]
            if made[key] and key not in started:
                yield f"the call {row['id']} is {state} ({row['reason']}), and was made"
            elif state == "done" and (row["output"] or "").startswith("{") and made[key] != 1:
                yield f"the call {row['id']} is done, and was made {made[key]} times"
