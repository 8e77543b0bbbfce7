"""Converts the active path of a conversation of version 0.1.0 into one line of runs."""

import contextlib
import hashlib
import json
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any

from migrations.from_0_1_0.sentences import STOP_CODES, get_notice_code, get_outcome

Json = dict[str, Any]
Rows = dict[str, list[Json]]  # by table

NUMBERS = 1_000
"""How many numbers there are for each old one: a message becomes several records."""
_INTERRUPTED, _END = NUMBERS - 2, NUMBERS - 1  # added to the number of a run's last message
_NO_OUTPUT = NUMBERS // 2  # added to the number of a call that never got an output
_RUN_ID = re.compile(r"[A-Za-z0-9._-]{1,90}")
_TASK_TOOLS = ("add_task", "list_tasks", "complete_task", "update_task", "delete_task")
_AGENT_TOOL = "do_with_"  # begins the names of the tools that start agents


def convert_conversation(user: str, conversation: str, messages: Sequence[Any], old_runs: Mapping[str, Any]) -> Rows:
    """Returns the rows for `messages`, which are named tuples in order, and for the runs that wrote them, by id."""
    key = {"user_id": user, "conversation_id": conversation}
    rows: Rows = defaultdict(list)
    runs = _split_into_runs(messages)
    ids: list[str] = []
    for run, following in zip_longest(runs, runs[1:]):
        name = run.old_id if run.old_id and _RUN_ID.fullmatch(run.old_id) else f"run_{run.message_id or conversation}"
        run_id = name if name not in ids else f"{name}_{len(ids) + 1}"
        if run.message_id:
            # An old run that also answered follow-ups becomes several: the first gets its usage, the last its outcome.
            old = old_runs.get(run.old_id or "")
            first = old if old is not None and old.id not in ids else None
            last = old if following is None or following.started_by != run.old_id else None
            row = run.end(run_id, usage=first and first.usage, old=last)
            rows["runs"].append({**key, **row, "previous_run_id": ids[-1] if ids else None})
            ids.append(run_id)
        rows["entries"] += [{**key, "run_id": run_id, **entry} for entry in run.entries]
        rows["tool_calls"] += [{**key, "run_id": run_id, **call} for call in run.calls]
    return rows


def _split_into_runs(messages: Sequence[Any]) -> "list[_Run]":
    """A message of the user starts a run, unless its run had not answered yet: then it is a steering message."""
    runs, time = [_Run()], Json()
    for row, following in zip_longest(messages, messages[1:]):
        if _get_time(row) and following is not None and following.kind == "user_message":
            time = _get_time(row)
            continue
        run = runs[-1]
        if row.kind == "user_message" and run.message_id and (run.is_answered or row.run_id != run.old_id):
            runs.append(_Run())
        runs[-1].add(row, time)
        time = {}
    return runs


class _Run:
    """A run that is being built from messages, whose first and last are of the old runs `started_by` and `old_id`."""

    def __init__(self) -> None:
        self.entries: list[Json] = []
        self.calls: list[Json] = []
        self.message_id = self.started_by = self.old_id = ""
        self.is_answered = False
        self._seq = self._last_seq = 0
        self._created_at = self._ended_at = ""
        self._model_turns = 0
        self._open: dict[str, Json] = {}  # calls of the newest model turn without an output
        self._equal_calls = Counter[tuple[str, str]]()

    def add(self, row: Any, time: Json) -> None:
        """`time` is the day and time that were noted before a message of the user."""
        content = row.item.get("content")
        self._last_seq, self._ended_at = row.seq * NUMBERS, row.created_at.isoformat()
        match row.kind:
            case "user_message":
                self._add_message(row, time)
            case "assistant_message":
                self._add(row, row.kind, "\n".join(part["text"] for part in content), model_turn=self._model_turns + 1)
                self.is_answered = True
            case "workflow" if row.item["workflow"]["type"] == "reasoning":  # others show the work of agents
                self._add_reasoning(row)
            case "task":
                self._add_notice(row, get_notice_code(row.item["task"].get("title") or ""))
            case "note" if content.get("text") in STOP_CODES:
                self._add_notice(row, STOP_CODES[content["text"]])
            case "note":  # about another branch; or the time of another answer to the same message
                self._add(row, "branch_note", content.get("text", ""), _get_time(row))
            case "change":
                self._add(row, "change", content["text"])
            case "summary":
                covers = int(content.get("covers") or 0) * NUMBERS + _END
                self._add(row, "summary", content["text"], {"covers": covers, "messages": content.get("messages") or 0})
            case "tool_calls":
                self._add_calls(row, content["calls"])
            case "tool_output":
                self._add_output(row, content["output"])
            case _:
                pass
        if self.message_id:
            self.old_id = row.run_id or self.old_id

    def end(self, run_id: str, *, usage: Json | None, old: Any) -> Json:
        """Returns the row of the run; `old` is the old run that ended with it."""
        self._close_calls(was_waiting=old is not None and old.status == "waiting")
        status = "completed" if old is None else old.outcome or "interrupted"
        if old is not None and old.outcome is None:
            notice = {"id": f"ntc_{run_id}", "kind": "notice", "details": {"code": "interrupted"}, "feedback": None}
            times = {"seq": self._last_seq + _INTERRUPTED, "created_at": self._ended_at}
            self.entries.append({**notice, **times, "text": "", "model_turn": 0, "complete": True})
        codes = self._notice_codes
        return {
            "id": run_id,
            "seq": self._seq,
            "top_run_id": run_id,
            "agent": "assistant",
            "active": True,
            "status": status,
            "stop_requested": False,
            "options": {},
            "usage": usage,
            "error_code": codes[-1] if codes and status != "completed" else None,
            "created_at": self._created_at,
            "running_since": self._created_at,
            "ended_at": old.ended_at.isoformat() if old is not None and old.ended_at else self._ended_at,
            "end_seq": self._last_seq + _END,
        }

    @property
    def _notice_codes(self) -> list[str]:
        return [entry["details"]["code"] for entry in self.entries if entry["kind"] == "notice"]

    def _add(self, row: Any, kind: str, text: str = "", details: Json | None = None, *, model_turn: int = 0) -> None:
        entry = {
            "id": row.id,
            "seq": row.seq * NUMBERS + 1,  # after the beginning of its run
            "kind": kind,
            "text": text,
            "details": details or None,
            "complete": True,
            "model_turn": model_turn,
            "feedback": row.feedback,
            "created_at": row.created_at.isoformat(),
        }
        self.entries.append(entry)

    def _add_message(self, row: Any, time: Json) -> None:
        text, details = _render_message(row.item)
        if self.message_id:
            details = {**details, "mode": "steer"}
        else:
            self.message_id, self.started_by, self._seq = row.id, row.run_id, row.seq * NUMBERS
            self._created_at = row.created_at.isoformat()
        self._add(row, row.kind, text, {**time, **details})

    def _add_reasoning(self, row: Any) -> None:
        workflow = row.item["workflow"]
        seconds = (workflow.get("summary") or {}).get("duration")
        text = "\n".join(task.get("content") or "" for task in workflow["tasks"])
        details = None if seconds is None else {"seconds": seconds}
        self._add(row, "reasoning", text, details, model_turn=self._model_turns + 1)

    def _add_notice(self, row: Any, code: str | None) -> None:
        if code is not None and code not in self._notice_codes:
            self._add(row, "notice", details={"code": code})

    def _add_calls(self, row: Any, calls: Sequence[Json]) -> None:
        self._close_calls()
        self._model_turns += 1
        self.is_answered = False
        existing = {call["id"] for call in self.calls}
        for nth, call in enumerate(calls):
            # Some providers count the calls of each response from zero.
            call_id = call["call_id"] if call["call_id"] not in existing else f"{call['call_id']}_{row.id}"
            self._open[call["call_id"]] = {
                "id": call_id,
                "seq": row.seq * NUMBERS + nth,
                "model_turn": self._model_turns,
                "tool": call["name"],
                "arguments": call["arguments"],
                "idempotency_key": self._create_idempotency_key(call),
                "created_at": row.created_at.isoformat(),
            }
            self.calls.append(self._open[call["call_id"]])

    def _create_idempotency_key(self, call: Json) -> str:
        """Returns the key that the call had, so that a retry of its message does not repeat it."""
        arguments = call["arguments"]
        with contextlib.suppress(ValueError):
            arguments = json.dumps(json.loads(arguments or "{}"), sort_keys=True, separators=(",", ":"))
        count = self._equal_calls[call["name"], arguments]
        self._equal_calls[call["name"], arguments] += 1
        return hashlib.sha256(json.dumps([self.message_id, call["name"], arguments, count]).encode()).hexdigest()

    def _add_output(self, row: Any, output: Json) -> None:
        if (call := self._open.pop(output["call_id"], None)) is None:
            return
        text = _render_output(output["output"])
        details = None
        with contextlib.suppress(ValueError):
            details = parsed if isinstance(parsed := json.loads(text), dict) else None
        has_failed = call["tool"] in _TASK_TOOLS and details is None
        outcome = get_outcome(text) or {"state": "failed" if has_failed else "done"}
        call |= {"result_seq": row.seq * NUMBERS, "output": text, "details": details, **outcome}

    def _close_calls(self, *, was_waiting: bool = False) -> None:
        """Ends the calls of a model turn without output: they may have been made, unless their run waited for approval;
        then only agents may have begun.
        """
        for call in self._open.values():
            is_not_made = was_waiting and not call["tool"].startswith(_AGENT_TOOL)
            outcome = {"state": "not_made", "reason": "ended"} if is_not_made else {"state": "unknown"}
            call |= {"result_seq": call["seq"] + _NO_OUTPUT, **outcome}
        self._open = {}


def _get_time(row: Any) -> Json:
    """Returns the day and time of a note about them, else nothing."""
    if row.kind != "note" or "now" not in row.item["content"]:
        return {}
    content = row.item["content"]
    return {name: content[name] for name in ("now", "time_zone", "calendar") if content.get(name)}


def _render_message(item: Json) -> tuple[str, Json]:
    """Returns the text of a message below its quote, and its parts if it has tags or a quote."""
    parts, quoted = item["content"], item.get("quoted_text")
    text, after_tag = "", False
    for part in parts:
        is_tag = part["type"] == "input_tag"
        text += (" @" if after_tag else "@") + part["text"] if is_tag else part["text"]
        after_tag = is_tag
    if not quoted:
        is_tagged = any(part["type"] == "input_tag" for part in parts)
        return text, {"content": parts} if is_tagged else {}
    quote = "\n".join(f"> {line}" for line in quoted.splitlines())
    return f"{quote}\n\n{text}", {"content": parts, "quoted_text": quoted}


def _render_output(output: Any) -> str:
    if isinstance(output, list):
        return "\n".join(str(part.get("text") or "") for part in output)
    return output if isinstance(output, str) else json.dumps(output)
