"""Renders the events of a run as chunks of the AI SDK's UI message stream: a run is one message of the assistant.

Where a call waits for approval the response ends, and another one goes on with the same message once it is decided.
"""

import json
from collections.abc import Collection, Iterable, Iterator
from typing import Any

from backend.api.event_renderer import EventRenderer
from backend.api.sse import format_event
from backend.cards.agent_workflow import WorkflowStream
from backend.cards.task_lists import render_list_text
from backend.context.render import output_of
from backend.conversations.records import Entry, Event, Record, Run, ToolCall
from backend.errors import NotFound
from backend.runs.outcomes import CUT_OFF_CODES, sentence_of
from backend.tools.table import find_tool
from common.changes import CORRECTION, render_changes
from common.database import DatabaseUnavailable

Chunk = dict[str, Any]
_UNFINISHED = "This call was interrupted. It may have been carried out partly or completely."
_LOST = "The connection was lost, but the assistant is still answering. Open the chat again to see the answer."
_FINISH_REASONS = {
    "answer_over_limit": "length",
    "answer_filtered": "content-filter",
    "answer_repeated": "other",
    "answer_ended": "other",
}
_UNSAFE_NAMES = ("__proto__", "constructor", "prototype")
OLDEST, NEWEST = 6, 7
"""The major versions of the AI SDK that can read the chunks."""
# Version 6 and the first releases of 7 reject fields that they do not know.
_UNKNOWN = {6: {"abort": ("reason",), "tool-approval-request": ("reason",)}}
_DONE = "[DONE]"
_PARTS = {"assistant_message": "text", "reasoning": "reasoning"}


class AiSdkRenderer(EventRenderer[Chunk | str]):
    """For a reader with this version of the AI SDK, who goes on after calls that were `decided`: all before was in an
    earlier response.
    """

    def __init__(
        self, run_id: str, thread: str | None = None, *, decided: Collection[str] = (), version: int = NEWEST
    ) -> None:
        super().__init__()
        self._run_id, self._thread, self._version = run_id, thread, version
        self._undecided = set(decided)
        self._has_started = self._in_step = False
        self._finish_reason = "stop"
        self._failure: Chunk | None = None  # why the run did not complete
        self._records: list[Record] = []
        self._list_text = ""
        self._open: dict[str, str] = {}  # entries that grow, by their ids: their kinds of parts
        self._calls: dict[str, ToolCall] = {}  # calls that were sent and have no output yet
        self._sent_calls: set[str] = set()
        self._questions: dict[str, ToolCall] = {}  # calls that wait for a decision
        self._workflows = WorkflowStream()

    async def handle(self, event: Event) -> Iterable[Chunk]:
        """Renders an event; until all decisions of the reader have come, only these and the start are rendered."""
        if event.type == "run_ended":
            self._list_text = await render_list_text(self._records)
        chunks = [*self._render(event)]
        if not self._undecided:
            return chunks
        self.is_over = False
        call = event.record if event.type == "approval_decided" else None
        if isinstance(call, ToolCall) and call.id in self._undecided:
            self._undecided.discard(call.id)
            return chunks
        return [chunk for chunk in chunks if chunk["type"] == "start"]

    def on_error(self, error: Exception) -> Iterable[Chunk]:
        if not isinstance(error, (DatabaseUnavailable, NotFound)):
            raise error
        return ()  # the run goes on, or was deleted: `after` says so

    def after(self) -> Iterable[Chunk | str]:
        """Ends the message, also one whose events cannot be read any more, although the run goes on."""
        if not self.is_over and self._questions:
            yield from self._finish("tool-calls")
        elif not self.is_over:
            yield {"type": "error", "errorText": _LOST}
        yield _DONE

    def encode(self, rendered: Chunk | str) -> bytes:
        if not isinstance(rendered, str):
            unknown = _UNKNOWN.get(self._version, {}).get(rendered["type"], ())
            rendered = {name: value for name, value in rendered.items() if name not in unknown}
        return format_event(rendered)

    def _render(self, event: Event) -> Iterator[Chunk]:
        if not self._has_started:
            self._has_started = True
            thread = self._thread or (event.run.conversation_id if event.run is not None else None)
            metadata = {"interactionId": self._run_id, **({"threadId": thread} if thread else {})}
            yield {"type": "start", "messageId": self._run_id, "messageMetadata": metadata}
        if event.type == "progress":
            yield {"type": "data-progress", "data": {"text": event.text}, "transient": True}
        if event.sub_agent is None:
            yield from self._render_run(event)
        yield from self._render_call(event)
        yield from self._render_workflow(event)

    # The run and what the assistant says

    def _render_run(self, event: Event) -> Iterator[Chunk]:
        match event.type, event.record:
            case "model_turn_started", _:
                yield from self._start_step()
            case "entry_delta", Entry(kind=kind) as entry if kind in _PARTS:
                yield from self._grow(entry, event)
            case "entry_completed", Entry(kind=kind) as entry if kind in _PARTS:
                yield from self._grow(entry, event)
                yield from self._close(entry.id)
                self._records.append(entry)
            case "entry_withdrawn", Entry(id=part) if part in self._open:
                yield from self._withdraw(part)
            case "entry_completed", Entry(kind="notice", details=details) if details:
                yield from self._render_notice(details["code"], details.get("values"))
            case "entry_completed", Entry() as entry:
                self._records.append(entry)
            case "run_waiting", _:
                yield from self._finish("tool-calls")
            case "run_ended", _ if event.run is not None:
                yield from self._end(event.run)
            case _:
                pass

    def _grow(self, entry: Entry, event: Event) -> Iterator[Chunk]:
        if not (text := self.take_text(entry, event)):
            return
        kind = _PARTS[entry.kind]
        if entry.id not in self._open:
            self._open[entry.id] = kind
            yield {"type": f"{kind}-start", "id": entry.id}
        yield {"type": f"{kind}-delta", "id": entry.id, "delta": text}

    def _close(self, entry_id: str) -> Iterator[Chunk]:
        if (kind := self._open.pop(entry_id, None)) is not None:
            yield {"type": f"{kind}-end", "id": entry_id}

    def _withdraw(self, entry_id: str) -> Iterator[Chunk]:
        """Withdraws a text part that was sent. The part itself says so, too: not every client reads our data."""
        yield {"type": "text-delta", "id": entry_id, "delta": f"\n\n{CORRECTION}"}
        yield from self._close(entry_id)
        yield {"type": "data-withdrawn", "id": f"{entry_id}:withdrawn", "data": {"id": entry_id}}

    def _render_notice(self, code: str, values: dict[str, Any] | None) -> Iterator[Chunk]:
        """Renders a warning. A failure ends what clients read, so that it is sent last."""
        sentence = sentence_of(code, values)
        if code in CUT_OFF_CODES:
            self._finish_reason = _FINISH_REASONS.get(code, self._finish_reason)
            yield {"type": "data-notice", "id": f"{self._run_id}:{code}", "data": {"text": sentence}}
        elif code == "cancelled":
            self._failure = {"type": "abort", "reason": sentence}
        else:
            self._failure = {"type": "error", "errorText": sentence}

    def _end(self, run: Run) -> Iterator[Chunk]:
        has_completed = run.status == "completed"
        if has_completed and (text := self._list_text):
            part = f"{self._run_id}:list"
            yield {"type": "text-start", "id": part}
            yield {"type": "text-delta", "id": part, "delta": text}
            yield {"type": "text-end", "id": part}
        yield from self._close_all()
        if run.changes:
            data = {"text": render_changes(run.changes), **run.changes}
            yield {"type": "data-changes", "id": f"{self._run_id}:changes", "data": data}
        if self._failure is not None:
            yield self._failure
            self.is_over = self._failure["type"] == "abort"
        if not self.is_over:
            yield from self._finish(self._finish_reason if has_completed else "error")

    def _start_step(self) -> Iterator[Chunk]:
        yield from self._finish_step()
        self._in_step = True
        yield {"type": "start-step"}

    def _finish_step(self) -> Iterator[Chunk]:
        if self._in_step:
            self._in_step = False
            yield {"type": "finish-step"}

    def _close_all(self) -> Iterator[Chunk]:
        """Ends the parts that are open, texts, calls and questions, as a client waits for them."""
        for entry_id in [*self._open]:
            yield from self._close(entry_id)
        for call_id in self._calls:
            yield {"type": "tool-output-error", "toolCallId": call_id, "errorText": _UNFINISHED, "dynamic": True}
        for call_id in self._questions:
            yield {"type": "tool-output-denied", "toolCallId": call_id}
        self._calls.clear()
        self._questions.clear()

    def _finish(self, reason: str) -> Iterator[Chunk]:
        """Finishes the message, or this part of it, which leaves calls open only if they wait for a decision."""
        if reason != "tool-calls":
            yield from self._close_all()
        yield from self._finish_step()
        yield {"type": "finish", "finishReason": reason}
        self.is_over = True

    # Calls, and what sub-agents do

    def _render_call(self, event: Event) -> Iterator[Chunk]:
        if not isinstance(call := event.record, ToolCall):
            return
        is_sub_agent = event.sub_agent is not None
        match event.type:
            case "call_requested" if not is_sub_agent and not call.needs_approval:
                yield self._send_call(call)
            case "approval_requested":
                yield from self._ask(call)
            case "approval_decided" if self._questions.pop(call.id, None) is not None:
                if call.state == "rejected":
                    yield {"type": "tool-output-denied", "toolCallId": call.id}
                else:
                    self._calls[call.id] = call
            case "call_completed" if call.state != "rejected" and (call.id in self._calls or not is_sub_agent):
                if not is_sub_agent:
                    self._records.append(call)
                yield from self._complete(call)
            case _:
                pass

    def _complete(self, call: ToolCall) -> Iterator[Chunk]:
        """Renders the output of a call, after its input if that was not sent; nothing for a call that was closed."""
        if call.id not in self._sent_calls:
            yield self._send_call(call)
        if self._calls.pop(call.id, None) is not None:
            yield _render_output(call)

    def _send_call(self, call: ToolCall) -> Chunk:
        self._calls[call.id] = call
        self._sent_calls.add(call.id)
        values = {"toolCallId": call.id, "toolName": call.tool, "input": _parse_value(call.arguments or "{}")}
        return {"type": "tool-input-available", **values, "dynamic": True}

    def _ask(self, call: ToolCall) -> Iterator[Chunk]:
        """Renders the question about a call, in a step of its own if another call stays open, as that of a sub-agent
        does. A client goes on by itself once all that the last step asked is decided, and nothing else in it is open.
        """
        if self._calls and not self._questions:
            yield from self._start_step()
        yield self._send_call(call)
        self._questions[call.id] = self._calls.pop(call.id)
        question = {"approvalId": call.id, "toolCallId": call.id, "reason": call.approval_text or ""}
        yield {"type": "tool-approval-request", **question}

    def _render_workflow(self, event: Event) -> Iterator[Chunk]:
        if (change := self._workflows.apply_event(event)) is None:
            return
        call, workflow = event.record, change.workflow
        agent = event.sub_agent or (find_tool(call.tool).agent if isinstance(call, ToolCall) else None)
        for number in change.numbers:
            step = {name: workflow.steps[number].get(name) for name in ("title", "content", "state")}
            data = {"agent": agent, "number": number, **step}
            yield {"type": "data-agent-step", "id": f"{workflow.id}:{number}", "data": data}
        if change.has_ended:
            yield {"type": "data-agent", "id": workflow.id, "data": {"agent": agent, "ended": workflow.summary}}


def _render_output(call: ToolCall) -> Chunk:
    output = output_of(call)
    if call.state == "done":
        return {"type": "tool-output-available", "toolCallId": call.id, "output": _parse_value(output), "dynamic": True}
    text = _UNFINISHED if call.state == "unknown" else output
    return {"type": "tool-output-error", "toolCallId": call.id, "errorText": text, "dynamic": True}


def _parse_value(text: str) -> Any:
    """Parses an object or list of JSON; returns the text if it is none, or has what clients in JavaScript reject."""
    if not text.lstrip().startswith(("{", "[")):
        return text
    try:
        value = json.loads(text, object_pairs_hook=_parse_object)
        json.dumps(value, allow_nan=False)  # JavaScript's JSON has neither NaN nor Infinity
    except (ValueError, RecursionError):
        return text
    return value


def _parse_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if any(name in _UNSAFE_NAMES for name, _ in pairs):
        raise ValueError
    return dict(pairs)
