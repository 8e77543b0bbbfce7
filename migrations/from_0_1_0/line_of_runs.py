"""Converts the active path of a conversation of version 0.1.0 into one line of runs."""

import re
import sys
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from migrations.from_0_1_0.old_items import (
    create_idempotency_key,
    get_time,
    parse_object,
    render_message,
    render_output,
)
from migrations.from_0_1_0.sentences import STOP_CODES, get_notice_code, get_outcome

Json = dict[str, Any]
Rows = dict[str, list[Json]]  # by table

_RUN_ID = re.compile(r"[A-Za-z0-9._-]{1,90}")
_TASK_TOOLS = ("add_task", "list_tasks", "complete_task", "update_task", "delete_task")


class Numbers:
    """Numbers everything that happened, in order."""

    last = 0

    def take(self) -> int:
        self.last += 1
        return self.last


@dataclass(slots=True)
class _Run:
    """A run that is being built from messages; `old_id` is the old run of its newest message."""

    old_id: str | None
    message_id: str
    seq: int
    created_at: str
    ended_at: str
    model_turns: int = 0
    is_answered: bool = False
    open: dict[str, Json] = field(default_factory=dict[str, Json])  # calls of the newest model turn without a result
    codes: list[str] = field(default_factory=list[str])  # of its notices
    equal_calls: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    rows: list[tuple[str, Json]] = field(default_factory=list[tuple[str, Json]])


class LineOfRuns:
    """The runs of one conversation. Old rows are named tuples; new ones are added to `rows`."""

    def __init__(
        self,
        key: tuple[str, str],
        *,
        old_runs: Mapping[str, Any],
        approvals: Sequence[Any],
        numbers: Numbers,
        rows: Rows,
    ) -> None:
        self._key: Json = {"user_id": key[0], "conversation_id": key[1]}
        self._old_runs, self._numbers, self._rows = old_runs, numbers, rows
        self._approvals = {(each.step_id, each.call["call_id"]): each for each in approvals if each.of_call is None}
        self._begun = {each.of_call for each in approvals}  # calls whose agents have asked for approval
        self._run: _Run | None = None
        self._run_ids: list[str] = []
        self._time: Any = None  # the note with day and time before a message
        self._early: list[Json] = []  # entries before the first run
        self._converted: list[tuple[int, int]] = []  # old number of a message, last new number up to it
        self._add_row = {
            "note": self._add_note,
            "change": lambda row: self._add_entry(row, "change", row.item["content"]["text"]),
            "summary": self._add_summary,
            "user_message": self._add_message,
            "assistant_message": self._add_answer,
            "workflow": self._add_reasoning,
            "task": self._add_error,
            "tool_calls": self._add_calls,
            "tool_output": self._add_output,
        }

    def convert(self, messages: Iterable[Any], inputs: Iterable[Any]) -> None:
        """Adds the runs of these messages, and the inputs that no model has read, as unsent messages."""
        for row in messages:
            if self._time is not None and row.kind != "user_message":  # of another answer to the same message
                note, self._time = self._time, None
                self._add_entry(note, "branch_note", details=get_time(note))
            if row.kind in self._add_row:
                self._add_row[row.kind](row)
            self._converted.append((row.seq, self._numbers.last))
        self._end_run(is_last_of_old=True)
        if self._run_ids:
            for each in inputs:
                if each.taken_at is None and each.dropped_at is None:
                    self._add_unsent(each)
        elif self._early:  # changes by hand in a conversation without messages
            some_run = next(iter(self._old_runs), f"run_{self._key['conversation_id']}")
            self._rows["entries"] += [{**entry, "run_id": some_run, "kind": "change"} for entry in self._early]

    # Entries

    def _add_entry(
        self, row: Any, kind: str, text: str = "", *, details: Json | None = None, model_turn: int = 0
    ) -> None:
        entry = self._create_entry(
            row.id, kind, row.created_at.isoformat(), text, details=details, model_turn=model_turn
        )
        entry |= {"seq": self._numbers.take(), "feedback": row.feedback}
        if self._run is None:
            self._early.append(entry)
        else:
            self._run.rows.append(("entries", entry))
            self._run.ended_at = entry["created_at"]

    def _create_entry(
        self, entry_id: str, kind: str, created_at: str, text: str = "", *, details: Json | None, model_turn: int = 0
    ) -> Json:
        values = {"text": text, "details": details or None, "model_turn": model_turn, "complete": True}
        return {**self._key, "id": entry_id, "kind": kind, "created_at": created_at, **values}

    def _add_note(self, row: Any) -> None:
        content = row.item["content"]
        if "now" in content:
            self._time = row
        elif (code := STOP_CODES.get(content["text"])) is not None:
            self._add_notice(row, code)
        else:
            self._add_entry(row, "branch_note", content["text"])

    def _add_summary(self, row: Any) -> None:
        """`covers` is the number of the last record that the summary replaces."""
        content = row.item["content"]
        last = bisect_right(self._converted, (int(content.get("covers") or 0), sys.maxsize)) - 1
        covers = self._converted[last][1] if last >= 0 else 0
        details = {"covers": covers, "messages": content.get("messages") or 0}
        self._add_entry(row, "summary", content["text"], details=details)

    def _add_message(self, row: Any) -> None:
        """A message starts a run, unless its run had not answered yet: then it is a steering message."""
        run = self._run
        is_steer = run is not None and not run.is_answered and row.run_id == run.old_id
        if not is_steer:
            self._end_run(is_last_of_old=run is not None and run.old_id != row.run_id)
            run = self._begin_run(row)
            if not self._run_ids:
                run.rows += [("entries", entry) for entry in self._early]
                self._early = []
        note, self._time = self._time, None
        text, more = render_message(row.item)
        mode = {"mode": "steer"} if is_steer else {}
        self._add_entry(row, "user_message", text, details={**get_time(note), **more, **mode})

    def _add_answer(self, row: Any) -> None:
        run = self._get_run(row)
        text = "\n".join(part["text"] for part in row.item["content"])
        self._add_entry(row, "assistant_message", text, model_turn=run.model_turns + 1)
        self._add_model_turn(run, row, run.model_turns + 1)
        run.is_answered = True

    def _add_reasoning(self, row: Any) -> None:
        """Only a model's reasoning is converted; the work of agents stays in the old tables."""
        workflow = row.item["workflow"]
        if workflow["type"] == "reasoning":
            run = self._get_run(row)
            seconds = (workflow.get("summary") or {}).get("duration")
            text = "\n".join(task.get("content") or "" for task in workflow["tasks"])
            details = None if seconds is None else {"seconds": seconds}
            self._add_entry(row, "reasoning", text, details=details, model_turn=run.model_turns + 1)

    def _add_error(self, row: Any) -> None:
        code = get_notice_code(row.item["task"].get("title") or "")
        if code is not None:
            self._get_run(row)
            self._add_notice(row, code)

    def _add_notice(self, row: Any, code: str) -> None:
        if self._run is not None and code not in self._run.codes:
            self._run.codes.append(code)
            self._add_entry(row, "notice", details={"code": code})

    def _add_unsent(self, each: Any) -> None:
        text, more = render_message(each.said["body"])
        run_id = each.run_id if each.run_id in self._run_ids else self._run_ids[-1]
        entry = self._create_entry(
            each.id, "user_message", each.created_at.isoformat(), text, details={**more, "mode": each.mode}
        )
        self._rows["entries"].append({**entry, "run_id": run_id, "seq": None})

    # Model turns and tool calls

    def _add_model_turn(self, run: _Run, row: Any, number: int) -> None:
        if row.usage:
            usage = {name: value for name, value in row.usage.items() if name.endswith("_tokens") and value}
            turn = {"user_id": self._key["user_id"], "number": number, "seq": self._numbers.take()}
            figures = {"model": row.usage.get("model") or "", "seconds": row.usage.get("seconds") or 0}
            run.rows.append(("model_turns", {**turn, **figures, "usage": {"requests": 1, **usage}}))

    def _add_calls(self, row: Any) -> None:
        run, calls = self._get_run(row), row.item["content"]["calls"]
        self._close_calls(run)
        run.model_turns += 1
        run.is_answered = False
        self._add_model_turn(run, row, run.model_turns)
        existing = {call["id"] for table, call in run.rows if table == "tool_calls"}
        for call in calls:
            approval = self._approvals.get((row.id, call["call_id"]))
            # Some providers count the calls of each response from zero.
            call_id = call["call_id"] if call["call_id"] not in existing else f"{call['call_id']}_{row.id}"
            converted = {
                **self._key,
                "id": call_id,
                "seq": self._numbers.take(),
                "model_turn": run.model_turns,
                "tool": call["name"],
                "arguments": call["arguments"],
                "idempotency_key": approval.key
                if approval is not None
                else create_idempotency_key(run.message_id, call, run.equal_calls),
                "created_at": row.created_at.isoformat(),
            }
            run.open[call["call_id"]] = converted
            run.rows.append(("tool_calls", converted))
        for call in calls:
            if (approval := self._approvals.get((row.id, call["call_id"]))) is not None:
                self._add_approval(run.open[call["call_id"]], approval)

    def _add_approval(self, converted: Json, approval: Any) -> None:
        converted |= {"approval_text": approval.text, "reach": approval.reach, "approval_seq": self._numbers.take()}
        if approval.decision is None:
            converted["state"] = "awaiting_approval"
            return
        converted |= {"state": "approved", "decision_seq": self._numbers.take()}
        if approval.decision == "refused":
            converted |= {"result_seq": self._numbers.take(), **get_outcome(None, approval.reason)}

    def _add_output(self, row: Any) -> None:
        output = row.item["content"]["output"]
        converted = self._run.open.pop(output["call_id"], None) if self._run else None
        if converted is None or converted.get("state") == "rejected":
            return
        text = render_output(output["output"])
        outcome = get_outcome(text, None)
        if not outcome:
            details = parse_object(text)
            failed = converted["tool"] in _TASK_TOOLS and details is None
            outcome = {"state": "failed" if failed else "done", "output": text, "details": details}
        converted |= {"result_seq": self._numbers.take(), **outcome}

    def _close_calls(self, run: _Run, *, was_waiting: bool = False) -> None:
        """Ends the calls of a model turn without output: they may have been made, unless their run waited."""
        for converted in run.open.values():
            match converted.get("state"):
                case "rejected":
                    continue
                case "awaiting_approval":
                    converted |= {"state": "rejected", "reason": "ended", "decision_seq": self._numbers.take()}
                case _ if was_waiting and converted["id"] not in self._begun:
                    converted |= {"state": "not_made", "reason": "ended"}
                case _:
                    converted["state"] = "unknown"
            converted["result_seq"] = self._numbers.take()
        run.open = {}

    # Runs

    def _begin_run(self, row: Any) -> _Run:
        created_at = row.created_at.isoformat()
        self._run = _Run(row.run_id, row.id, self._numbers.take(), created_at, created_at)
        return self._run

    def _get_run(self, row: Any) -> _Run:
        """Returns the run of a row, which may be another answer to the same message."""
        run = self._run or self._begin_run(row)
        run.old_id = row.run_id or run.old_id
        return run

    def _end_run(self, *, is_last_of_old: bool) -> None:
        """An old run that also answered follow-ups becomes several: the first gets its usage, the last its outcome."""
        run, self._run = self._run, None
        if run is None:
            return
        old = self._old_runs.get(run.old_id or "")
        last = old if is_last_of_old else None
        first = old if old is not None and old.id not in self._run_ids else None
        self._close_calls(run, was_waiting=last is not None and last.status == "waiting")
        run_id = self._create_run_id(run)
        if last is not None and last.outcome is None:
            run.codes.append("interrupted")
            notice = self._create_entry(f"ntc_{run_id}", "notice", run.ended_at, details={"code": "interrupted"})
            run.rows.append(("entries", {**notice, "seq": self._numbers.take()}))
        status = "completed" if last is None else last.outcome or "interrupted"
        created_at = first.started_at.isoformat() if first is not None else run.created_at
        converted = {
            **self._key,
            "id": run_id,
            "seq": run.seq,
            "previous_run_id": self._run_ids[-1] if self._run_ids else None,
            "top_run_id": run_id,
            "agent": "assistant",
            "active": True,
            "status": status,
            "stop_requested": False,
            "options": {},
            "usage": first.usage if first is not None else None,
            "error_code": run.codes[-1] if run.codes and status != "completed" else None,
            "created_at": created_at,
            "running_since": created_at,
            "ended_at": last.ended_at.isoformat() if last is not None and last.ended_at else run.ended_at,
            "end_seq": self._numbers.take(),
        }
        self._run_ids.append(run_id)
        self._rows["runs"].append(converted)
        for table, row in run.rows:
            self._rows[table].append({**row, "run_id": run_id})

    def _create_run_id(self, run: _Run) -> str:
        name = run.old_id if run.old_id and _RUN_ID.fullmatch(run.old_id) else f"run_{run.message_id}"
        return name if name not in self._run_ids else f"{name}_{len(self._run_ids) + 1}"
