"""Renders the events of a conversation's runs as lines of its event log: a tree of what follows what."""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any

from backend.context.render import output_of
from backend.conversations.conversations import Conversation
from backend.conversations.records import Entry, Event, ModelTurn, Run, ToolCall
from backend.runs.outcomes import is_failure, sentence_of_notice
from backend.tools.connectors import names
from backend.transcript.lines import Line, create_line

_TurnKey = tuple[str, int]  # run and number of a model turn


class LogRenderer:
    """`runs` are all of the conversation, also those of its sub-agents, in order."""

    def __init__(self, conversation: Conversation, runs: Sequence[Run]) -> None:
        self._conversation = conversation
        self._runs = {run.id: run for run in runs}
        self._numbers: dict[str, int] = {}
        for run in runs:
            if not run.is_sub_agent:  # an alternative has the number of what it replaces
                self._numbers[run.id] = self._numbers.get(run.previous_run_id or "", 0) + 1
        self._newest: dict[str, str] = {}  # of each run the line that its next one goes on from
        self._messages: set[str] = set()  # ids of the user's that have a line
        self._turns: dict[_TurnKey, str] = {}  # the line of each model turn
        self._texts: defaultdict[_TurnKey, list[str]] = defaultdict(list)
        self._times: dict[_TurnKey, datetime] = {}
        self._counted: set[_TurnKey] = set()
        self._results: dict[_TurnKey, datetime] = {}  # when the newest result of each model turn came

    def render_start(self, events: Sequence[Event]) -> Line:
        """Renders the first line; `events` are the first of the conversation."""
        own, said = self._conversation, [event.record for event in events if isinstance(event.record, Entry)]
        # In a database of version 0.1.0 the first message is a moment older than its conversation.
        at = min([own.created_at, *(entry.created_at for entry in said if entry.created_at is not None)])
        return self._line("session_start", at, id=own.id, parent_id=own.details.get("left"), actor="system")

    def render(self, events: Sequence[Event]) -> Iterator[Line]:
        """Renders the lines of what happened in some runs, of which these are all events."""
        for event in events:
            self._collect(event)
        for event in events:
            if event.run is not None:
                yield from self._render_event(event, event.run)

    def render_end(self, successors: Iterable[tuple[str, datetime]]) -> Iterator[Line]:
        """Renders the last lines: the conversations that were begun in place of this one."""
        own = self._conversation
        before = self._line_before(self._runs[own.head_run_id]) if own.head_run_id in self._runs else own.id
        for other, at in successors:
            line_id = f"{own.id}/{other}"
            yield self._line("session_clear", at, id=line_id, parent_id=before, actor="user", output=other)

    def _collect(self, event: Event) -> None:
        """Notes ahead what belongs to the line of a model turn: its texts, its figures, and when it was."""
        match event.type, event.record:
            case "entry_completed", Entry(kind="assistant_message") as message:
                self._texts[_turn_of(message)].append(message.text)
                self._set_time(message)
            case "call_requested", ToolCall() as call:
                self._set_time(call)
            case "model_turn_ended", ModelTurn() as turn:
                self._counted.add(_turn_of(turn))
            case _:
                pass

    def _set_time(self, record: Entry | ToolCall) -> None:
        """Notes the time of a model turn's first record."""
        if record.created_at is not None:
            self._times.setdefault(_turn_of(record), record.created_at)

    def _render_event(self, event: Event, run: Run) -> Iterator[Line]:
        """Renders the lines of an event; none for what the log does not have."""
        match event.type, event.record:
            case "entry_completed", Entry(kind="user_message") as message if not run.is_sub_agent:
                yield from self._render_message(message, run)
            case "entry_completed", Entry(kind="assistant_message") as message:
                if _turn_of(message) not in self._counted:  # it was cut off, or is older than the figures
                    yield from self._render_turn(message, run)
            case "entry_completed", Entry(kind="notice", details=dict(details)) as notice if not run.is_sub_agent:
                is_error = is_failure(details["code"]) or details["code"] == "interrupted"
                values = {"level": "ERROR" if is_error else "WARNING", "error": sentence_of_notice(notice)}
                yield self._add(run, "error", _time_of(notice, run), id=notice.id, actor="system", **values)
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
        if message.id in self._messages:  # another answer to a message has a copy of it
            self._newest[run.id] = message.id
            return
        self._messages.add(message.id)
        values = {"id": message.id, "actor": "user", "input": message.text}
        yield self._add(run, "user_message", _time_of(message, run), **values)

    def _render_turn(self, record: ModelTurn | Entry | ToolCall, run: Run) -> Iterator[Line]:
        """Renders a request to the model as one line, with its texts and figures, at the first of its records."""
        key = _turn_of(record)
        if key in self._turns:
            return
        self._turns[key] = line_id = f"{run.id}/turn_{record.model_turn}"
        at = self._times.get(key) or run.ended_at or run.created_at
        model = {"model": (run.usage or {}).get("model")}
        figures = _render_figures(record) if isinstance(record, ModelTurn) else model
        values = {"id": line_id, "actor": "assistant", "agent": run.agent, **figures}
        output = "\n".join(self._texts[key]) or None
        yield self._add(run, "assistant_message", at, output=output, **values)

    def _render_call(self, call: ToolCall, run: Run) -> Iterator[Line]:
        """Renders a call, after the line of its model turn."""
        yield from self._render_turn(call, run)
        values = {"actor": "assistant", "agent": run.agent, "tool_name": names.for_people(call.tool)}
        line_id, before = _line_of_call(run.id, call.id), self._turns[_turn_of(call)]
        at, kind = _time_of(call, run), _kind_of(call, "call")
        yield self._add(run, kind, at, id=line_id, parent_id=before, input=call.arguments, **values)

    def _render_result(self, call: ToolCall, run: Run) -> Line:
        """Renders what became of a call; an error unless it is done."""
        output, before = output_of(call), _line_of_call(run.id, call.id)
        latency = None if call.seconds is None else round(call.seconds * 1000)
        values: Line = {"actor": "tool", "agent": run.agent, "output": output, "latency_ms": latency}
        values["tool_name"] = names.for_people(call.tool)
        error = {} if call.state == "done" else {"level": "ERROR", "error": output}
        at, kind = self._time_of_result(call, run), _kind_of(call, "result")
        return self._add(run, kind, at, id=f"{before}/result", parent_id=before, **values, **error)

    def _time_of_result(self, call: ToolCall, run: Run) -> datetime:
        """Returns when the result of a call came: the calls of a model turn are made one after the other.

        How long a call waited for its approval is not stored, and is left out.
        """
        key, requested_at = _turn_of(call), _time_of(call, run)
        started_at = max(requested_at, self._results.get(key, requested_at))
        self._results[key] = at = started_at + timedelta(seconds=call.seconds or 0)
        return at

    def _render_command(self, entry: Entry, run: Run, text: str, result: dict[str, Any] | None) -> Line:
        """Renders a command of the user. The model does not call it, so its result is its only line."""
        values = {"actor": "user", "tool_name": text.partition(" ")[0], "input": text}
        output = json.dumps(result or {}, ensure_ascii=False)
        return self._add(run, "tool_result", _time_of(entry, run), id=entry.id, output=output, **values)

    def _add(self, run: Run, event: str, at: datetime, *, id: str, parent_id: str | None = None, **values: Any) -> Line:
        """Creates a line of a run, which the run's next one follows."""
        before = parent_id or self._line_before(run)
        self._newest[run.id] = id
        where = {"parent_id": before, "run_id": run.top_run_id, "turn": self._numbers.get(run.top_run_id)}
        return self._line(event, at, id=id, **where, **values)

    def _line_before(self, run: Run) -> str:
        """Returns the id of the line that the next one of a run follows: its own last one, that of the call that
        started it, or the last one of the run before.
        """
        if run.id in self._newest:
            return self._newest[run.id]
        if run.parent_run_id is not None:
            return _line_of_call(run.parent_run_id, run.parent_call_id or "")
        previous = self._runs.get(run.previous_run_id or "")
        return self._line_before(previous) if previous else self._conversation.id

    def _line(self, event: str, at: datetime, **values: Any) -> Line:
        """Creates a line of this conversation."""
        return create_line(event, at, session_id=self._conversation.id, **values)


def _time_of(record: Entry | ToolCall, run: Run) -> datetime:
    return record.created_at or run.created_at


def _turn_of(record: Entry | ToolCall | ModelTurn) -> _TurnKey:
    return record.run_id, record.model_turn


def _line_of_call(run_id: str, call_id: str) -> str:
    """Returns the id of a call's line."""
    return f"{run_id}/{call_id}"


def _kind_of(call: ToolCall, kind: str) -> str:
    """Returns the name of a call's event: of a tool of ours or of another MCP server."""
    return f"{'tool' if names.server_of(call.tool) is None else 'mcp'}_{kind}"


def _render_figures(turn: ModelTurn) -> Line:
    """The figures of a request to the model; tokens are null if the provider does not count them."""
    usage = turn.usage or {}
    is_counted = bool(usage.get("input_tokens"))
    return {
        "model": turn.model or None,
        "prompt_tokens": usage["input_tokens"] if is_counted else None,
        "completion_tokens": usage.get("output_tokens", 0) if is_counted else None,
        "thinking_tokens": usage.get("reasoning_tokens") if is_counted else None,
        "latency_ms": round(turn.seconds * 1000),
    }
