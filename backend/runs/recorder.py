"""Stores and publishes what a run does, as the hooks of the Agents SDK report it."""

import asyncio
import hashlib
import json
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from agents import Agent, ModelResponse, RunHooks, Tool
from agents.items import ItemHelpers
from agents.run_context import RunContextWrapper
from agents.tool_context import ToolContext
from openai.types.responses import ResponseFunctionToolCall
from psycopg import AsyncCursor
from psycopg.rows import DictRow

from backend.context.render import output_of
from backend.conversations import runs
from backend.conversations.approvals import send_state, send_wait
from backend.conversations.records import (
    Entry,
    EntryKind,
    Event,
    EventRecord,
    EventType,
    ModelTurn,
    Outcome,
    Run,
    Timeline,
    ToolCall,
)
from backend.conversations.timeline import moments_of
from backend.ids import new_id
from backend.model.reader import Piece
from backend.model.tool_calls import is_object, storable
from backend.runs.approvals import Approvals
from backend.runs.live_run import LiveRun, RunContext
from backend.runs.outcomes import Ending
from backend.tools.connection import FailedOutput
from common.database import Database, Transaction

MOST_CALLS = 6
"""How many calls of one response are made."""
# Why the model was cut off, as the Responses API and the database have it.
_FINISH_REASONS = {"length": "max_output_tokens", "content_filter": "content_filter"}


class Recorder(RunHooks[RunContext]):
    """Records one run. `seed` is the id of the message that it answers; idempotency keys are derived from it."""

    def __init__(self, database: Database, live: LiveRun, run: Run, *, seed: str, approvals: Approvals) -> None:
        self.run = run
        self._database, self._live, self._seed, self._approvals = database, live, seed, approvals
        self.model_name = self.answer = ""  # the answer is the text of the newest model turn
        self.model_turn = 0  # the number of the newest one
        self.finish_reason: str | None = None
        """Why the newest model turn was cut off: `max_output_tokens` or `content_filter`."""
        self.open_calls: dict[str, ToolCall] = {}
        """The calls of the newest model turn that have no result."""
        self.begun: set[str] = set()
        """Those that a tool was started for."""
        self.is_changed = False
        """Whether a row was stored since the history was read."""
        self.calls: list[ToolCall] = []
        self._equal_calls: Counter[tuple[str, str]] = Counter()
        self._growing: dict[str, Entry] = {}
        self._grown: set[str] = set()  # since it was stored the last time
        self._unstored: list[ModelTurn | Entry] = []  # the last model turn, to be stored with the outcome
        self._asked_at = self._tool_started_at = 0.0
        self._message: Entry | None = None  # of the model turn that is being written
        self._thought: Entry | None = None  # its reasoning, until text comes: a turn may have several
        self._thinking_since = 0.0

    def continue_from(self, timeline: Timeline) -> None:
        self.calls = calls = timeline.calls
        self._equal_calls = Counter((call.tool, normalize_json(call.arguments)) for call in calls)
        self.open_calls = {call.id: call for call in calls if call.result_seq is None}
        self.begun = {call.id for call in self.open_calls.values() if call.state == "running"}
        self.model_turn = max((record.model_turn for record in timeline.records), default=0)
        self.is_changed = False

    # What the model writes

    def read_piece(self, piece: Piece) -> None:
        if piece.thought:
            if self._thought is None:
                self._thought = self._start_entry("rs", "reasoning")
                self._thinking_since = time.monotonic()
            self._grow_entry(self._thought, piece.thought)
        if piece.text:
            self._end_thought()
            if self._message is None:
                self._message = self._start_entry("msg", "assistant_message")
            self._grow_entry(self._message, piece.text)
        self.finish_reason = _FINISH_REASONS.get(piece.finish or "")

    def _start_entry(self, prefix: str, kind: EntryKind) -> Entry:
        entry = Entry(self.run.id, new_id(prefix), kind, complete=False, model_turn=self.model_turn + 1)
        self._growing[entry.id] = entry
        self._publish("entry_started", entry)
        return entry

    def _end_thought(self) -> None:
        if self._thought is not None:
            self._thought.details = {"seconds": max(1, round(time.monotonic() - self._thinking_since))}
            self._thought = None

    def _grow_entry(self, entry: Entry, text: str) -> None:
        entry.text += text
        self._grown.add(entry.id)
        self._publish("entry_delta", entry, text=text)

    def _publish(
        self, kind: EventType, record: EventRecord | None = None, number: int | None = None, text: str = ""
    ) -> None:
        self._live.stream.append(Event(kind, record, number, text, self.run))

    def publish_progress(self, sentence: str) -> None:
        self._publish("progress", text=sentence)

    async def store_growth(self) -> None:
        if not self._grown:
            return
        async with self._hold_lease() as tx:
            # Copies, as one may be completed while they are stored: that has its number when its turn ends.
            entries = [replace(self._growing[entry_id]) for entry_id in self._grown if entry_id in self._growing]
            self._grown.clear()
            for entry in entries:
                await runs.send_record(tx, self.run, entry)

    def take_unstored(self) -> list[ModelTurn | Entry]:
        """What is to be stored with the outcome: a message that was cut off is complete as far as it was shown."""
        records = [*self._unstored, *(entry for entry in self._complete_entries() if entry.text.strip())]
        self._unstored = []
        return records

    # Hooks of the SDK

    async def on_llm_start(
        self,
        context: RunContextWrapper[RunContext],
        agent: Agent[RunContext],
        system_prompt: str | None,
        input_items: list[Any],
    ) -> None:
        """Stores also outputs that the SDK has made itself, as of a tool that does not exist."""
        self._asked_at = time.monotonic()
        self._publish("model_turn_started", ModelTurn(self.run.id, self.model_turn + 1, self.model_name, None, 0, None))
        outputs = {
            item["call_id"]: item["output"] for item in input_items if item.get("type") == "function_call_output"
        }
        missed = [call for call in self.open_calls.values() if call.id in outputs and call.id not in self.begun]
        for call in missed:
            call.output, call.state = _get_text(outputs[call.id]), "failed"
        if missed:
            await self.store(missed)
        await self.wait_if_stopped()

    async def on_llm_end(
        self, context: RunContextWrapper[RunContext], agent: Agent[RunContext], response: ModelResponse
    ) -> None:
        """Stores a model turn before its calls are made; one without calls is stored with the outcome of the run."""
        self.model_turn += 1
        seconds, usage = time.monotonic() - self._asked_at, _render_usage(response.usage)
        turn = ModelTurn(self.run.id, self.model_turn, self.model_name, usage, seconds, self.finish_reason)
        before = {name: count for name, count in (self.run.usage or {}).items() if isinstance(count, int)}
        self.run.usage = {"model": self.model_name, **(Counter(before) + Counter(usage))}
        entries = self._complete_entries()
        self.answer = "\n".join(entry.text for entry in entries if entry.kind == "assistant_message")
        items = [item for item in response.output if isinstance(item, ResponseFunctionToolCall)]
        if not items:
            self._unstored += [turn, *entries]
            return
        calls = [self._create_call(item) for item in items]
        if self.finish_reason == "max_output_tokens" and not is_object(calls[-1].arguments):
            calls[-1].reason, calls[-1].details = "over_limit", {"max_tokens": agent.model_settings.max_tokens}
        for call in calls[MOST_CALLS:]:
            call.reason, call.details = "too_many", None
        await self._decide_calls(calls, context.context)
        self.calls += calls
        self.begun.clear()
        self.open_calls = {call.id: call for call in calls}
        await self.store([*entries, turn, *calls])

    async def _decide_calls(self, calls: Sequence[ToolCall], context: RunContext) -> None:
        to_make = [call for call in calls if call.reason is None]
        context.waiting = await self._approvals.find_waiting(self.run, to_make, self.calls, context.directory)
        context.not_made = {call.id: output_of(call) for call in calls if call.reason}
        for call in calls:
            # From here on it may have been made, unless it waits: no statement of its own says that it begins.
            call.state = "running"
            if call.id in context.waiting:
                call.state, call.approval_text = "requested", ""

    async def on_tool_start(self, context: RunContextWrapper[RunContext], agent: Agent[RunContext], tool: Tool) -> None:
        """After a stop it never returns, so that the tool does not begin."""
        assert isinstance(context, ToolContext)
        await self.wait_if_stopped()
        self.begun.add(context.tool_call_id)
        self._tool_started_at = time.monotonic()

    async def on_tool_end(
        self, context: RunContextWrapper[RunContext], agent: Agent[RunContext], tool: Tool, result: Any
    ) -> None:
        assert isinstance(context, ToolContext)
        assert context.tool_call is not None
        call = self.open_calls[context.tool_call_id]
        if call.id in context.context.waiting_agents:
            return
        if call.reason is None:
            call.seconds = time.monotonic() - self._tool_started_at
            call.details = make_storable(call.details)
            call.output = storable(_get_text(ItemHelpers.tool_call_output_item(context.tool_call, result)["output"]))
            if call.state != "failed":
                call.state = "failed" if isinstance(result, FailedOutput) else "done"
        else:
            call.state = "not_made"
        await self.store([call])

    async def begin_call(self, call: ToolCall) -> None:
        async with self._hold_lease() as tx:
            await send_state(tx, self.run, call, "running")
            signals = await runs.send_signals(tx, self.run)
        call.state = "running"
        await self._apply_signals(signals)

    async def wait_if_stopped(self) -> None:
        """After a stop no tool and no model turn begins any more: it waits here until the SDK's run is cancelled."""
        if self._live.stop_requested.is_set():
            await asyncio.Event().wait()

    async def _apply_signals(self, sent: AsyncCursor[DictRow]) -> None:
        row = await fetch_only_row(sent)
        if row["stop_requested"]:
            self._live.stop(Ending("cancelled", "cancelled"))
        self._live.has_messages |= row["has_messages"]

    # Rows

    def _complete_entries(self) -> list[Entry]:
        self._end_thought()
        entries = sorted(self._growing.values(), key=lambda entry: entry.kind == "assistant_message")
        for entry in entries:
            entry.complete = True
        self._growing, self._message = {}, None
        self._grown.clear()
        return entries

    def _create_call(self, item: ResponseFunctionToolCall) -> ToolCall:
        arguments = normalize_json(item.arguments)
        count = self._equal_calls[item.name, arguments]
        self._equal_calls[item.name, arguments] += 1
        key = hashlib.sha256(json.dumps([self._seed, item.name, arguments, count]).encode()).hexdigest()
        call = ToolCall(self.run.id, item.call_id, self.model_turn, item.name, item.arguments, "requested", key)
        call.reach = self._approvals.policy.reach_of(call.tool)
        return call

    @asynccontextmanager
    async def _hold_lease(self) -> AsyncIterator[Transaction]:
        """A transaction that fails with `LeaseLost` unless this process still holds the run's lease."""
        async with self._live.lock, self._database.transaction(self.run.user_id) as tx:
            await runs.hold(tx, self.run)
            yield tx

    async def store(self, records: Sequence[EventRecord], outcome: Outcome | None = None) -> bool:
        """Stores records, and the outcome if there is one, in one transaction, then publishes the records.

        Returns false if the run is not to end yet, as it has messages to read. Raises `LeaseLost`.
        """
        async with self._hold_lease() as tx:
            sent = [await runs.send_record(tx, self.run, record) for record in records]
            ended = await runs.send_finish(tx, self.run, outcome) if outcome is not None else None
            signals = await runs.send_signals(tx, self.run)
        await self._publish_stored(records, sent)
        await self._apply_signals(signals)
        if outcome is None or ended is None:
            return True
        if (row := await ended.fetchone()) is None:
            return False
        self.run.status, self.run.end_seq = outcome, row["end_seq"]
        return True

    async def store_wait(self, calls: Sequence[ToolCall], later: Sequence[ToolCall]) -> bool:
        """Stores the calls that wait for approval and the usage, and publishes the requests for approval.

        The calls `later` are stored as requested; they are made when the run goes on. The top run is also stored as
        waiting, unless no call waits any more or a stop was requested: then this returns false.
        """
        async with self._hold_lease() as tx:
            sent = [await runs.send_record(tx, self.run, call) for call in calls]
            for call in later:
                await send_state(tx, self.run, call, "requested")
            await runs.send_usage(tx, self.run)
            waits = None if self.run.is_sub_agent else await send_wait(tx, self.run)
        await self._publish_stored(calls, sent)
        return waits is None or await waits.fetchone() is not None

    async def _publish_stored(self, records: Sequence[EventRecord], sent: Sequence[AsyncCursor[DictRow]]) -> None:
        """Gives records what the database has added to them, and publishes what has happened.

        That is nothing for a call whose row has not changed: another process has stored its result, or its approval
        was requested before.
        """
        self.is_changed = True
        for record, cursor in zip(records, sent, strict=True):
            before, row = moments_of(record), await cursor.fetchone()
            for name, value in (row or {}).items():
                setattr(record, name, value)
            if isinstance(record, ToolCall) and record.state not in ("requested", "running", "awaiting_approval"):
                self.open_calls.pop(record.id, None)
            for kind, number in moments_of(record):
                if (kind, number) not in before:
                    self._publish(kind, record, number)

    def publish_read(self, entry: Entry) -> None:
        self.is_changed = True
        self._live.stream.append(Event("entry_completed", entry, entry.last_seq, run=self._live.run))


async def fetch_only_row(cursor: AsyncCursor[DictRow]) -> DictRow:
    row = await cursor.fetchone()
    assert row is not None
    return row


def normalize_json(arguments: str) -> str:
    try:
        return json.dumps(json.loads(arguments or "{}"), sort_keys=True, separators=(",", ":"))
    except ValueError:
        return arguments


def _render_usage(usage: Any) -> dict[str, int]:
    counted = {
        "requests": usage.requests,
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "reasoning_tokens": usage.output_tokens_details.reasoning_tokens,
    }
    return {name: count for name, count in counted.items() if count}


def make_storable(value: Any) -> Any:
    """Returns the JSON value without characters that PostgreSQL cannot store: programs write any bytes."""
    match value:
        case str():
            return storable(value)
        case list():
            return [make_storable(one) for one in value]
        case dict():
            return {storable(str(name)): make_storable(one) for name, one in value.items()}
        case _:
            return value


def _get_text(output: str | Sequence[Any]) -> str:
    return output if isinstance(output, str) else "\n".join(part.get("text", "") for part in output)
