"""Renders the event log of a conversation: lines of what happened in its runs, each with the line that it follows."""

import json
import re
from collections import defaultdict
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from pydantic import BaseModel, Field

from backend.context.render import output_of
from backend.conversations import timeline
from backend.conversations.conversations import Conversation
from backend.conversations.records import Entry, Event, EventRecord, ModelTurn, Run, RunLink, Timeline, ToolCall
from backend.runs.outcomes import is_failure, sentence_of_notice
from backend.tools.connectors import names
from common.changes import render_changes
from common.database import Database

# With their sub-agents' runs, and at least one run: however long a conversation is, little of it is in memory.
_RUNS_AT_ONCE, _BYTES_AT_ONCE = 20, 262_144

Line = dict[str, Any]
_WITHDRAWN = "The text was withdrawn: it said that something was changed, but nothing had been."
# What a reader may take for the end of a line, or a terminal for a command: in JSON it stands in texts alone.
_ESCAPED = re.compile("[\x7f-\x9f\u2028\u2029]")

_ModelTurn = tuple[str, int]  # run and number


class LogLine(BaseModel):
    """A line of a chat's log; every key is always there."""

    ts: str = Field(description="UTC, with milliseconds and Z.")
    level: Literal["INFO", "WARNING", "ERROR"]
    event: Literal[
        "session_start",
        "user_message",
        "assistant_message",
        "tool_call",
        "tool_result",
        "mcp_call",
        "mcp_result",
        "session_clear",
        "error",
        "changes",
    ]
    session_id: str = Field(description="The chat's id.")
    turn: int | None = Field(description="The number of the message on its branch, from 1.")
    actor: Literal["user", "assistant", "tool", "system"] | None
    model: str | None
    input: str | None = Field(description="The user's message, or a call's arguments as JSON.")
    output: str | None = Field(description="The assistant's text, the result of a call, or the changes as JSON.")
    tool_name: str | None
    prompt_tokens: int | None
    completion_tokens: int | None
    thinking_tokens: int | None
    latency_ms: int | None
    error: str | None
    id: str
    parent_id: str | None = Field(
        description="The line that it follows; of a chat's first line, the chat that it replaced."
    )
    run_id: str | None
    agent: str | None


async def read_log(database: Database, user_id: str, conversation: Conversation) -> AsyncGenerator[Line]:
    links = await timeline.load_links(database, user_id, conversation.id)
    renderer = LogRenderer(conversation, links)
    unread = [link.id for link in links.values() if link.parent_call_id is None]
    is_first = True
    while unread or is_first:
        sizes = await timeline.load_sizes(database, user_id, unread[:_RUNS_AT_ONCE])
        count = timeline.count_within([sizes.get(id, 0) for id in unread[:_RUNS_AT_ONCE]], _BYTES_AT_ONCE)
        trees = await timeline.load_trees(database, user_id, unread[:count])
        del unread[:count]
        if is_first:
            yield renderer.render_start(trees)
            is_first = False
        for line in renderer.render(trees):
            yield line
    for line in renderer.render_end(await timeline.load_successors(database, user_id, conversation.id)):
        yield line


class LogRenderer:
    """`links` are those of all runs of the conversation, also of its sub-agents', in order."""

    def __init__(self, conversation: Conversation, links: Mapping[str, RunLink]) -> None:
        self._conversation = conversation
        self._links = links
        self._numbers: dict[str, int] = {}
        for link in links.values():
            if link.parent_call_id is None:  # an alternative has the number of what it replaces
                self._numbers[link.id] = self._numbers.get(link.previous_run_id or "", 0) + 1
        self._newest: dict[str, str] = {}  # of each run the line that its next one goes on from
        self._message_ids: set[str] = set()
        self._turn_ids: set[str] = set()  # of the lines of these turns
        self._turns: defaultdict[_ModelTurn, list[EventRecord]] = defaultdict(list)  # what belongs to each one's line
        self._result_times: dict[_ModelTurn, datetime] = {}
        self._newest_result_at = conversation.created_at

    def render_start(self, trees: Timeline) -> Line:
        own = self._conversation
        # In a database of version 0.1.0 the first message is a moment older than its conversation.
        at = min([own.created_at, *(entry.created_at for entry in trees.entries if entry.created_at is not None)])
        return self._line("session_start", at, id=own.id, parent_id=own.details.get("left"), actor="system")

    def render(self, trees: Timeline) -> Iterator[Line]:
        """Renders whole runs with those of their sub-agents, later ones than before."""
        self._turns.clear()
        self._turn_ids.clear()
        for record in (*trees.records, *trees.model_turns):
            self._turns[_get_turn(record)].append(record)
        runs = {run.id: run for run in trees.runs}
        by_hand = [entry for entry in trees.entries if entry.kind in ("command", "change")]
        events = [Event("entry_completed", entry, entry.seq, run=runs[entry.run_id]) for entry in by_hand]
        for event in sorted([*timeline.events_of(trees), *events], key=lambda event: event.number or 0):
            if event.run is not None:
                yield from self._render_event(event, event.run)

    def render_end(self, successors: Iterable[tuple[str, datetime]]) -> Iterator[Line]:
        own = self._conversation
        before = self._find_line_before(own.head_run_id or "")
        for other, at in successors:
            line_id = f"{own.id}/{other}"
            yield self._line("session_clear", at, id=line_id, parent_id=before, actor="user", output=other)

    def _render_event(self, event: Event, run: Run) -> Iterator[Line]:
        match event.type, event.record:
            case "entry_completed", Entry(kind="user_message") as message if not run.is_sub_agent:
                yield from self._render_message(message, run)
            case "entry_completed", Entry(kind="assistant_message") as message:
                turn = self._turns[_get_turn(message)]
                if not any(isinstance(one, ModelTurn) for one in turn):  # it was cut off, or is older than the figures
                    yield from self._render_turn(message, run)
            case "entry_completed", Entry(kind="notice", details=dict(details)) as notice if not run.is_sub_agent:
                is_error = is_failure(details["code"]) or details["code"] == "interrupted"
                values = {"level": "ERROR" if is_error else "WARNING", "error": sentence_of_notice(notice)}
                yield self._add(run, "error", _get_time(notice, run), id=notice.id, actor="system", **values)
            case "entry_completed", Entry(kind="changes", details=dict(facts)) as changes:
                yield self._render_changes(changes, run, facts)
            case "entry_completed", Entry(kind="command", text=text, details=result) as command:
                yield self._render_command(command, run, text, result)
            case "entry_completed", Entry(kind="change", details={"change": "undone", "tasks": tasks}) as change:
                yield self._render_command(change, run, "/undo", {"tasks": tasks})
            case "model_turn_ended", ModelTurn() as turn:
                yield from self._render_turn(turn, run)
            case "call_requested", ToolCall() as call:
                yield from self._render_call(call, run)
            case "call_completed", ToolCall() as call:
                yield self._render_result(call, run)
            case _:
                pass

    def _render_message(self, message: Entry, run: Run) -> Iterator[Line]:
        """Renders a message of the user; nothing for its copy, to which another answer belongs."""
        if message.id in self._message_ids:  # another answer to a message has a copy of it
            self._newest[run.id] = message.id
            return
        self._message_ids.add(message.id)
        values = {"id": message.id, "actor": "user", "input": message.text}
        yield self._add(run, "user_message", _get_time(message, run), **values)

    def _render_turn(self, record: ModelTurn | Entry | ToolCall, run: Run) -> Iterator[Line]:
        line_id = _line_of_turn(record)
        if line_id in self._turn_ids:
            return
        self._turn_ids.add(line_id)
        texts, times = list[str](), list[datetime | None]()
        for one in self._turns[_get_turn(record)]:
            if isinstance(one, ToolCall) or (isinstance(one, Entry) and one.kind == "assistant_message"):
                times.append(one.created_at)
                texts += [one.text] if isinstance(one, Entry) else []
        at = next(filter(None, times), run.ended_at or run.created_at)
        model = {"model": (run.usage or {}).get("model")}
        figures = _render_figures(record) if isinstance(record, ModelTurn) else model
        if any(isinstance(one, Entry) and one.kind == "withdrawn" for one in self._turns[_get_turn(record)]):
            figures |= {"level": "WARNING", "error": _WITHDRAWN}
        values = {"id": line_id, "actor": "assistant", "agent": run.agent, **figures}
        yield self._add(run, "assistant_message", at, output="\n".join(texts) or None, **values)

    def _render_call(self, call: ToolCall, run: Run) -> Iterator[Line]:
        yield from self._render_turn(call, run)
        values = {"actor": "assistant", "agent": run.agent, "tool_name": names.get_display_name(call.tool)}
        line_id, before = _line_of_call(run.id, call.id), _line_of_turn(call)
        at, kind = _get_time(call, run), _get_kind(call, "call")
        yield self._add(run, kind, at, id=line_id, parent_id=before, input=call.arguments, **values)

    def _render_result(self, call: ToolCall, run: Run) -> Line:
        output, before = output_of(call), _line_of_call(run.id, call.id)
        latency = None if call.seconds is None else round(call.seconds * 1000)
        values: Line = {"actor": "tool", "agent": run.agent, "output": output, "latency_ms": latency}
        values["tool_name"] = names.get_display_name(call.tool)
        error = {} if call.state == "done" else {"level": "ERROR", "error": output}
        at, kind = self._estimate_result_time(call, run), _get_kind(call, "result")
        return self._add(run, kind, at, id=f"{before}/result", parent_id=before, **values, **error)

    def _estimate_result_time(self, call: ToolCall, run: Run) -> datetime:
        """Estimates when a result came, as that is not stored: its seconds after the previous result of the turn.

        It is called once for each call, in order. No result is before the previous one of any turn: the call of an
        agent may have begun some time after it was requested.
        """
        requested_at = _get_time(call, run)
        started_at = max(requested_at, self._result_times.get(_get_turn(call), requested_at))
        result_at = max(started_at + timedelta(seconds=call.seconds or 0), self._newest_result_at)
        self._result_times[_get_turn(call)] = self._newest_result_at = result_at
        return result_at

    def _render_changes(self, entry: Entry, run: Run, facts: dict[str, Any]) -> Line:
        is_less = facts.get("named") or facts.get("unread")
        warning = {"level": "WARNING", "error": render_changes(facts)} if is_less else {}
        output = json.dumps(facts, ensure_ascii=False)
        return self._add(run, "changes", _get_time(entry, run), id=entry.id, actor="system", output=output, **warning)

    def _render_command(self, entry: Entry, run: Run, text: str, result: dict[str, Any] | None) -> Line:
        values = {"actor": "user", "tool_name": text.partition(" ")[0], "input": text}
        output = json.dumps(result or {}, ensure_ascii=False)
        return self._add(run, "tool_result", _get_time(entry, run), id=entry.id, output=output, **values)

    def _add(self, run: Run, event: str, at: datetime, *, id: str, parent_id: str | None = None, **values: Any) -> Line:
        before = parent_id or self._find_line_before(run.id)
        self._newest[run.id] = id
        where = {"parent_id": before, "run_id": run.top_run_id, "turn": self._numbers.get(run.top_run_id)}
        return self._line(event, at, id=id, **where, **values)

    def _find_line_before(self, run_id: str) -> str:
        link = self._links.get(run_id)
        while link is not None:
            if link.id in self._newest:
                return self._newest[link.id]
            if link.parent_run_id is not None:
                return _line_of_call(link.parent_run_id, link.parent_call_id or "")
            link = self._links.get(link.previous_run_id or "")
        return self._conversation.id

    def _line(self, event: str, at: datetime, **values: Any) -> Line:
        own = {"ts": format_time(at), "level": "INFO", "event": event, "session_id": self._conversation.id}
        return dict.fromkeys(LogLine.model_fields) | own | values


def format_line(line: Line) -> str:
    return _ESCAPED.sub(lambda match: f"\\u{ord(match[0]):04x}", json.dumps(line, ensure_ascii=False)) + "\n"


def format_time(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _get_time(record: Entry | ToolCall, run: Run) -> datetime:
    return record.created_at or run.created_at


def _get_turn(record: EventRecord) -> _ModelTurn:
    return record.run_id, record.model_turn


def _line_of_turn(record: EventRecord) -> str:
    return f"{record.run_id}/turn_{record.model_turn}"


def _line_of_call(run_id: str, call_id: str) -> str:
    return f"{run_id}/{call_id}"


def _get_kind(call: ToolCall, kind: str) -> str:
    return f"{'tool' if names.server_of(call.tool) is None else 'mcp'}_{kind}"


def _render_figures(turn: ModelTurn) -> Line:
    usage = turn.usage or {}
    is_counted = bool(usage.get("input_tokens"))
    return {
        "model": turn.model or None,
        "prompt_tokens": usage["input_tokens"] if is_counted else None,
        "completion_tokens": usage.get("output_tokens", 0) if is_counted else None,
        "thinking_tokens": usage.get("reasoning_tokens") if is_counted else None,
        "latency_ms": round(turn.seconds * 1000),
    }
