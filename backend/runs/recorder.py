"""Stores and publishes what a run does, under the lease of its tree."""

import logging
import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from psycopg import AsyncCursor
from psycopg.rows import DictRow

from backend.conversations import runs, steering
from backend.conversations.approvals import send_state, send_wait
from backend.conversations.records import (
    CallReason,
    Entry,
    EntryKind,
    Event,
    EventRecord,
    EventType,
    ModelTurn,
    Outcome,
    Status,
    Timeline,
    ToolCall,
)
from backend.conversations.timeline import moments_of
from backend.ids import new_id
from backend.model.responses.reader import Piece
from backend.runs import metrics
from backend.runs.live_run import LiveRun
from backend.runs.outcomes import Ending
from backend.tools.run_context import RunContext
from backend.users.usage import send_tokens
from common.database import Database, Transaction

logger = logging.getLogger(__name__)

# Why the model was cut off, as the Responses API and the database have it.
_FINISH_REASONS = {
    "length": "max_output_tokens",
    "content_filter": "content_filter",
    "repeated": "repetition",
    "ended": "ended",
}
# Finish reasons of a last model turn, and the codes of their notices.
_CUT_OFF = {
    "max_output_tokens": "answer_over_limit",
    "content_filter": "answer_filtered",
    "repetition": "answer_repeated",
    "ended": "answer_ended",
}
# Error codes of runs, and why their open calls were not made.
_REASONS: dict[str, CallReason] = {
    "cancelled": "stopped",
    "other_message": "other_message",
    "reach_changed": "reach_changed",
}


class Recorder:
    """Records one run."""

    def __init__(self, database: Database, live: LiveRun, context: RunContext) -> None:
        self.run = context.run
        self._database, self._live, self._context = database, live, context
        self._began = time.perf_counter() if self.run.is_sub_agent else live.began
        self.model_name = self.answer = ""  # the answer is the text of the newest model turn
        self.earlier_answers: list[str] = []
        """The texts of the model turns before, without those that were withdrawn."""
        self.model_turn = 0  # the number of the newest one
        self.finish_reason: str | None = None
        """Why the newest model turn was cut off: `max_output_tokens`, `content_filter` or `repetition`."""
        self.calls: list[ToolCall] = []
        self.is_changed = False
        """Whether a row was stored since the history was read."""
        self.unstored: list[ModelTurn | Entry] = []
        """The last model turn, which is stored with the outcome."""
        self.changes: Entry | None = None
        """What the run has changed so far, if that was read; it is stored with the outcome, or while the run waits."""
        self.has_false_claim = False
        """Whether the newest answer claims a change that the run has not made, or hides that one was not made."""
        self._requested_at = 0.0
        self._replay: dict[str, Any] | None = None
        self._turn_usage = Counter[str]()
        self._entries: list[Entry] = []  # of the model turn that is being written
        self._message: Entry | None = None
        self._thought: Entry | None = None  # its reasoning, until text comes: a turn may have several
        self._thinking_since = 0.0

    def continue_from(self, timeline: Timeline) -> None:
        context = self._context
        self.calls = timeline.calls
        context.open_calls = {call.id: call for call in self.calls if call.result_seq is None}
        context.begun = {call.id for call in context.open_calls.values() if call.state == "running"}
        self.model_turn = max((record.model_turn for record in timeline.records), default=0)
        self.earlier_answers = [one.text for one in timeline.entries if one.kind == "assistant_message"]
        self.answer = ""
        self.is_changed = False

    # What the model writes

    def start_model_turn(self) -> None:
        self._requested_at = time.monotonic()
        self._turn_usage.clear()
        self._replay = None
        self._publish("model_turn_started", ModelTurn(self.run.id, self.model_turn + 1, self.model_name, None, 0, None))

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
        self._replay = piece.replay

    def count_usage(self, usage: Mapping[str, int]) -> None:
        """Adds what a request to the model has used, also one that failed or was cancelled."""
        before = {name: count for name, count in (self.run.usage or {}).items() if isinstance(count, int)}
        self._turn_usage.update(usage)
        self._live.unstored_tokens.update({name: usage[name] for name in ("input_tokens", "output_tokens")})
        self.run.usage = {"model": self.model_name, **(Counter(before) + Counter(usage))}

    def end_model_turn(self) -> tuple[ModelTurn, list[Entry]]:
        """Counts a model turn; returns what is to be stored of it, apart from its calls."""
        self.model_turn += 1
        seconds, usage = time.monotonic() - self._requested_at, dict(+self._turn_usage)
        turn = ModelTurn(self.run.id, self.model_turn, self.model_name, usage, seconds, self.finish_reason)
        turn.replay = self._replay
        entries = self._complete_entries()
        if self.answer:
            self.earlier_answers.append(self.answer)
        self.answer = "\n".join(entry.text for entry in entries if entry.kind == "assistant_message")
        return turn, entries

    def _start_entry(self, prefix: str, kind: EntryKind) -> Entry:
        entry = Entry(self.run.id, new_id(prefix), kind, complete=False, model_turn=self.model_turn + 1)
        self._entries.append(entry)
        self._publish("entry_started", entry)
        return entry

    def _end_thought(self) -> None:
        if self._thought is not None:
            self._thought.details = {"seconds": max(1, round(time.monotonic() - self._thinking_since))}
            self._thought = None

    def _grow_entry(self, entry: Entry, text: str) -> None:
        entry.text += text
        self._live.growing[entry.id] = entry
        self._publish("entry_delta", entry, text=text)

    def _complete_entries(self) -> list[Entry]:
        self._end_thought()
        entries = sorted(self._entries, key=lambda entry: entry.kind == "assistant_message")
        for entry in entries:
            entry.complete = True
        self._entries, self._message = [], None
        self._live.growing.clear()  # of a tree of runs only one writes at a time
        return entries

    # What is published

    def _publish(
        self, kind: EventType, record: EventRecord | None = None, number: int | None = None, text: str = ""
    ) -> None:
        self._live.stream.append(Event(kind, record, number, text, self.run))

    def publish_progress(self, sentence: str) -> None:
        self._publish("progress", text=sentence)

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
                self._context.open_calls.pop(record.id, None)
            for kind, number in moments_of(record):
                if (kind, number) not in before:
                    self._publish(kind, record, number)

    # What is stored

    async def store(self, records: Sequence[EventRecord], outcome: Outcome | None = None) -> bool:
        """Stores records, and the outcome if there is one, in one transaction, then publishes the records.

        What the run has changed comes before its notice, as many readers read nothing after an error. Returns false if
        the run is not to end yet, as it has messages to read. Raises `LeaseLost`.
        """
        notices = [one for one in records if isinstance(one, Entry) and one.kind == "notice"]
        done = [one for one in records if one not in notices]
        async with hold_lease(self._database, self._live) as tx:
            sent = [await runs.send_record(tx, self.run, record) for record in done]
            changes = await self._send_changes(tx, outcome) if outcome is not None else None
            sent_notices = [await runs.send_record(tx, self.run, notice) for notice in notices]
            ended = await runs.send_finish(tx, self.run, outcome) if outcome is not None else None
            signals = await runs.send_signals(tx, self.run)
        await self._publish_stored(done, sent)
        if self.changes is not None and changes is not None:
            await runs.read_numbers(self.changes, changes)
            self.publish_changes()
        await self._publish_stored(notices, sent_notices)
        await self._apply_signals(signals)
        if outcome is None or ended is None:
            return True
        if (row := await ended.fetchone()) is None:
            return False
        self.run.status, self.run.end_seq = outcome, row["end_seq"]
        return True

    async def _send_changes(self, tx: Transaction, status: Status) -> AsyncCursor[DictRow] | None:
        return await runs.send_changes(tx, self.run.id, self.changes, status) if self.changes is not None else None

    def publish_changes(self) -> None:
        """Publishes what the run has changed, if that was stored with its outcome."""
        if self.changes is not None and self.changes.seq is not None:
            self.run.changes = self.changes.details
            self._publish("entry_completed", self.changes, self.changes.last_seq)

    async def store_wait(self, calls: Sequence[ToolCall], later: Sequence[ToolCall]) -> bool:
        """Stores the calls that wait for approval and the usage, and publishes the requests for approval.

        The calls `later` are stored as requested; they are made when the run goes on. The top run is also stored as
        waiting, unless no call waits any more or a stop was requested: then this returns false.
        """
        async with hold_lease(self._database, self._live) as tx:
            sent = [await runs.send_record(tx, self.run, call) for call in calls]
            for call in later:
                await send_state(tx, self.run, call, "requested")
            await runs.send_usage(tx, self.run)
            await self._send_changes(tx, "waiting")
            waits = None if self.run.is_sub_agent else await send_wait(tx, self.run)
        await self._publish_stored(calls, sent)
        return waits is None or await waits.fetchone() is not None

    async def withdraw_answer(self) -> bool:
        """Stores the last model turn with its texts withdrawn, and publishes that; false if the run is to stop.

        Until it is stored, `unstored` has them without their text: they are never stored as an answer any more.
        """
        async with hold_lease(self._database, self._live) as tx:
            row = await fetch_only_row(await runs.send_signals(tx, self.run))
            if row["stop_requested"]:
                return False
            self.unstored = [_withdraw(record) for record in self.unstored]
            self.answer, self.has_false_claim = "", False
            sent = [await runs.send_record(tx, self.run, record) for record in self.unstored]
        self._live.tokens_today = row["tokens_today"]
        stored, self.unstored = self.unstored, []
        await self._publish_stored(stored, sent)
        logger.info("run %s: a text that claims a change was withdrawn, as nothing was changed", self.run.id)
        return True

    async def begin_call(self, call: ToolCall) -> None:
        async with hold_lease(self._database, self._live) as tx:
            await send_state(tx, self.run, call, "running")
            signals = await runs.send_signals(tx, self.run)
        call.state = "running"
        await self._apply_signals(signals)

    async def take_messages(self) -> None:
        """Takes the steering messages that are queued, and publishes them as messages of the top run."""
        for entry in await steering.take_messages(self._database, self._live.run):
            self._live.messages.append(entry)
            self.is_changed = True
            self._live.stream.append(Event("entry_completed", entry, entry.last_seq, run=self._live.run))

    async def _apply_signals(self, sent: AsyncCursor[DictRow]) -> None:
        row = await fetch_only_row(sent)
        if row["stop_requested"]:
            self._live.stop(Ending("cancelled", "cancelled"))
        self._live.has_messages |= row["has_messages"]
        self._live.tokens_today = row["tokens_today"]

    # The outcome

    def close(self, ending: Ending) -> tuple[Ending, list[EventRecord]]:
        """Ends the run in memory: returns its ending and the records that are to be stored with that.

        A message that was cut off is complete as far as it was shown. An answer without text becomes the failure
        `empty_answer`, unless its notice says that it was ended.
        """
        entries = [entry for entry in self._complete_entries() if entry.text.strip()]
        records: list[EventRecord] = [*self.unstored, *entries]
        self.unstored = []
        has_answer = any(isinstance(one, Entry) and one.kind == "assistant_message" for one in records)
        cut_off = _CUT_OFF.get(self.finish_reason or "")
        if ending.outcome == "completed" and not has_answer and cut_off != "answer_repeated":
            ending = Ending("failed", "empty_answer")
        code = cut_off if ending.outcome == "completed" else ending.error_code or ending.outcome
        if code is not None:
            records.append(self._create_notice(code, ending))
        if ending.outcome == "completed" and self.has_false_claim:
            records.append(self._create_notice("nothing_changed", ending))
        for call in self._context.open_calls.values():
            call.state = "unknown" if call.id in self._context.begun else "not_made"
            call.reason = _REASONS.get(ending.error_code or "", "ended")
            records.append(call)
        self.run.error_code = ending.error_code
        return ending, records

    def _create_notice(self, code: str, ending: Ending) -> Entry:
        details = {"code": code, "values": ending.values or {}}
        return Entry(self.run.id, new_id("ntc"), "notice", details=details)

    async def read_outcome(self) -> None:
        stored = await runs.load(self._database, self.run.user_id, self.run.id)
        self.run.status, self.run.end_seq, self.run.changes = stored.status, stored.end_seq, stored.changes

    def measure_end(self) -> None:
        metrics.record_end(
            self.run,
            began=self._began,
            first_event_seconds=self._live.first_event_seconds,
            tool_calls=len(self.calls),
        )


@asynccontextmanager
async def hold_lease(database: Database, live: LiveRun) -> AsyncIterator[Transaction]:
    """A transaction that fails with `LeaseLost` unless this process still holds the lease of a tree of runs.

    It also stores the model tokens that were used since the one before.
    """
    async with live.lock:
        tokens = live.unstored_tokens.copy()
        async with database.transaction(live.run.user_id) as tx:
            await runs.hold(tx, live.run)
            if tokens:
                await send_tokens(tx, tokens)
            yield tx
        live.unstored_tokens -= tokens


async def store_growth(database: Database, live: LiveRun) -> None:
    """Stores how far the entries have come that are being written in a tree of runs."""
    if not live.growing:
        return
    async with hold_lease(database, live) as tx:
        # Copies, as one may be completed while they are stored: that has its number when its turn ends.
        entries = [replace(entry) for entry in live.growing.values()]
        live.growing.clear()
        for entry in entries:
            await runs.send_record(tx, live.run, entry)


async def fetch_only_row(cursor: AsyncCursor[DictRow]) -> DictRow:
    row = await cursor.fetchone()
    assert row is not None
    return row


def _withdraw(record: ModelTurn | Entry) -> ModelTurn | Entry:
    # A copy, as events that some readers have not read yet have the record.
    is_text = isinstance(record, Entry) and record.kind == "assistant_message"
    return replace(record, kind="withdrawn", text="") if is_text else record
