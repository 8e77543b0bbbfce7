"""The rows of runs in SQL: written under their lease, and ended once.

A run's lease is its row's `process_id` with status `running`: the advisory lock of a process that is alive. Writes in
a tree of runs first lock its top run's row (`hold`), so that numbers of a tree are committed in their order.
"""

from collections.abc import Collection, Mapping
from typing import Any

from psycopg import AsyncCursor
from psycopg.rows import DictRow
from psycopg.types.json import Jsonb

from backend.conversations.records import (
    CallReason,
    Entry,
    EventRecord,
    ModelTurn,
    Outcome,
    Run,
    Status,
    ToolCall,
)
from backend.conversations.timeline import CHANGES_COLUMN, RUN_COLUMNS
from backend.errors import NotFound
from backend.ids import new_id
from backend.users.usage import ADD_TOKENS, TOKENS_TODAY
from common.database import Database, Transaction

SIGNAL = "run_signal"
"""The channel on which a run's process hears that there is a stop request or a message to read."""
CHANGED = "run_changed"
"""The channel on which the followers in other processes hear that a run has changed."""

_CANCEL_WAITING = """
UPDATE runs SET status = 'cancelled', ended_at = now()
WHERE user_id = %(user)s AND status = 'waiting' AND top_run_id IN (
    SELECT id FROM runs WHERE user_id = %(user)s AND conversation_id = %(conversation)s AND status = 'waiting'
      AND parent_call_id IS NULL AND id IS DISTINCT FROM %(unless)s
)
RETURNING id, parent_call_id"""
# What runs that were ended from outside have left open: nobody decides it any more, and the outcome of what may have
# begun is unknown. The end has the last number, so that nothing of a run comes after it.
_CLOSE_CALLS = """
UPDATE tool_calls c SET result_seq = nextval('event_seq'), reason = coalesce(c.reason, %(reason)s),
    state = CASE c.state WHEN 'running' THEN 'unknown' WHEN 'awaiting_approval' THEN 'rejected' ELSE 'not_made' END,
    decision_seq = CASE c.state WHEN 'awaiting_approval' THEN nextval('event_seq') ELSE c.decision_seq END
FROM runs r
WHERE c.user_id = %(user)s AND c.conversation_id = %(conversation)s
  AND c.state IN ('requested', 'awaiting_approval', 'approved', 'running')
  AND r.user_id = c.user_id AND r.id = c.run_id AND r.status NOT IN ('running', 'waiting')"""
_COMPLETE_ENTRIES = """
UPDATE entries e SET complete = true, completion_seq = nextval('event_seq')
FROM runs r
WHERE e.user_id = %(user)s AND e.conversation_id = %(conversation)s AND NOT e.complete
  AND r.user_id = e.user_id AND r.id = e.run_id AND r.status NOT IN ('running', 'waiting')"""
_ADD_NOTICE = """
INSERT INTO entries (user_id, run_id, id, conversation_id, kind, details)
SELECT r.user_id, r.id, %(notice)s, r.conversation_id, 'notice', %(details)s
FROM runs r
WHERE r.user_id = %(user)s AND r.conversation_id = %(conversation)s AND r.parent_call_id IS NULL
  AND r.status NOT IN ('running', 'waiting') AND r.end_seq IS NULL"""
_NUMBER_ENDS = """
UPDATE runs SET end_seq = nextval('event_seq')
WHERE user_id = %(user)s AND conversation_id = %(conversation)s AND status NOT IN ('running', 'waiting')
  AND end_seq IS NULL"""
_HOLD = "SELECT hold_run(%(top)s, %(process)s)"
# A statement of its own: one that waits for the lock does not see what was committed while it waited.
_SIGNALS = f"""
SELECT stop_requested, {TOKENS_TODAY} AS tokens_today,
    EXISTS (SELECT FROM entries WHERE user_id = %(user)s AND run_id = %(top)s AND seq IS NULL) AS has_messages
FROM runs WHERE user_id = %(user)s AND id = %(top)s"""
_STORE_ENTRY = """
INSERT INTO entries (user_id, run_id, id, conversation_id, kind, text, details, complete, model_turn)
VALUES (%(user)s, %(run_id)s, %(id)s, %(conversation)s, %(kind)s, %(text)s, %(details)s, %(complete)s, %(model_turn)s)
ON CONFLICT (user_id, run_id, id) DO UPDATE SET kind = excluded.kind, text = excluded.text, details = excluded.details,
    complete = excluded.complete, completion_seq = CASE WHEN excluded.complete THEN nextval('event_seq') END
RETURNING seq, last_seq, created_at"""
_ADD_MODEL_TURN = """
INSERT INTO model_turns (user_id, run_id, number, model, usage, seconds, finish_reason, replay)
VALUES (%(user)s, %(run_id)s, %(model_turn)s, %(model)s, %(usage)s, %(seconds)s, %(finish_reason)s, %(replay)s)
ON CONFLICT (user_id, run_id, number) DO UPDATE SET seconds = excluded.seconds  -- sent again after a lost response
RETURNING seq"""
_ADD_CALL = """
INSERT INTO tool_calls
    (user_id, run_id, id, conversation_id, model_turn, tool, arguments, state, idempotency_key, reach, approval_text)
VALUES (%(user)s, %(run_id)s, %(id)s, %(conversation)s, %(model_turn)s, %(tool)s, %(arguments)s, %(state)s,
    %(idempotency_key)s, %(reach)s, %(approval_text)s)
RETURNING seq, created_at"""
# One that still waits for approval when its run ends is rejected.
_COMPLETE_CALL = """
UPDATE tool_calls SET state = CASE state WHEN 'awaiting_approval' THEN 'rejected' ELSE %(state)s END,
    output = %(output)s, details = %(details)s, seconds = %(seconds)s, reason = %(reason)s,
    decision_seq = CASE state WHEN 'awaiting_approval' THEN nextval('event_seq') ELSE decision_seq END,
    result_seq = nextval('event_seq')
WHERE user_id = %(user)s AND run_id = %(run_id)s AND id = %(id)s AND result_seq IS NULL
RETURNING state, decision_seq, result_seq"""
_REQUEST_APPROVAL = """
UPDATE tool_calls SET state = %(state)s, approval_seq = nextval('event_seq'), approval_text = %(approval_text)s
WHERE user_id = %(user)s AND run_id = %(run_id)s AND id = %(id)s AND approval_seq IS NULL RETURNING approval_seq"""
_STORE_USAGE = "UPDATE runs SET usage = %(usage)s WHERE user_id = %(user)s AND id = %(run)s"
# A run does not complete while there is a message that it has not read.
_MAY_FINISH = """(%(status)s <> 'completed'
    OR NOT EXISTS (SELECT FROM entries WHERE user_id = %(user)s AND run_id = %(run)s AND seq IS NULL))"""
_FINISH = f"""
UPDATE runs SET status = %(status)s, process_id = NULL, usage = %(usage)s, error_code = %(error)s, ended_at = now(),
    end_seq = nextval('event_seq')
WHERE user_id = %(user)s AND id = %(run)s AND status = 'running' AND process_id = %(process)s AND {_MAY_FINISH}
RETURNING end_seq"""
# They are incomplete while the run waits, and nobody reads them. What is stored later takes their place, as the run may
# have changed more, and its number comes after all that the run has done in between.
_DROP_CHANGES = """
DELETE FROM entries WHERE user_id = %(user)s AND run_id = %(run)s AND kind = 'changes' AND NOT complete"""
_ADD_CHANGES = f"""
INSERT INTO entries (user_id, run_id, id, conversation_id, kind, details, complete)
SELECT user_id, id, %(id)s, conversation_id, 'changes', %(details)s, %(status)s <> 'waiting' FROM runs
WHERE user_id = %(user)s AND id = %(run)s AND %(details)s::jsonb IS NOT NULL AND {_MAY_FINISH}
RETURNING seq, last_seq, created_at"""
_MADE_CALLS = """
SELECT c.id FROM runs r JOIN tool_calls c ON c.user_id = r.user_id AND c.run_id = r.id
WHERE r.user_id = %(user)s AND c.user_id = %(user)s AND r.top_run_id = %(top)s AND c.tool = ANY(%(tools)s)
  AND c.state IN ('running', 'done', 'failed', 'unknown') LIMIT 1"""
# What the user stops answers nothing more; other runs leave their queue as unsent.
_DROP_QUEUE = """
DELETE FROM entries e USING runs r
WHERE e.user_id = %(user)s AND e.run_id = %(run)s AND e.seq IS NULL
  AND r.user_id = e.user_id AND r.id = e.run_id AND r.status = 'cancelled'"""
_END_TREE = """
UPDATE runs SET status = %(status)s, process_id = NULL, error_code = %(error)s, ended_at = now()
WHERE user_id = %(user)s AND top_run_id = %(top)s AND status = 'running' AND process_id = %(process)s"""
_LOCK_ABANDONED = """
SELECT id, conversation_id FROM runs
WHERE user_id = %(user)s AND id = %(top)s AND status = 'running' AND process_id = %(process)s FOR NO KEY UPDATE"""
_REQUEST_STOP = f"""
UPDATE runs r SET stop_requested = true WHERE r.user_id = %(user)s AND r.id = %(run)s AND r.status = 'running'
RETURNING {RUN_COLUMNS}"""
_LOAD = f"SELECT {RUN_COLUMNS}, {CHANGES_COLUMN} FROM runs r WHERE r.user_id = %(user)s AND r.id = %(run)s"
_RUNNING = f"""
SELECT {RUN_COLUMNS} FROM runs r WHERE r.user_id = %(user)s AND r.status = 'running' AND r.parent_call_id IS NULL"""
_ACTIVE = f"""
SELECT {RUN_COLUMNS} FROM runs r
WHERE r.user_id = %(user)s AND r.conversation_id = %(conversation)s AND r.status IN ('running', 'waiting')
  AND r.parent_call_id IS NULL"""
# What a run uses after its end, for a summary or a title.
_ADD_USAGE = f"""
WITH ended AS (
    UPDATE runs SET usage = coalesce(usage, '{{}}') || (
        SELECT jsonb_object_agg(key, coalesce((usage->>key)::bigint, 0) + value::bigint)
        FROM jsonb_each_text(%(usage)s)
    )
    WHERE user_id = %(user)s AND id = %(run)s AND status NOT IN ('running', 'waiting') RETURNING id
)
{ADD_TOKENS.format(from_clause="FROM ended")} RETURNING t.input_tokens + t.output_tokens AS tokens_today"""


async def hold(tx: Transaction, run: Run) -> None:
    """Locks the top run; the transaction fails with `LeaseLost` unless this process still holds its lease."""
    await tx.execute(_HOLD, top=run.top_run_id, process=run.process_id)


async def send_signals(tx: Transaction, run: Run) -> AsyncCursor[DictRow]:
    """Sends the query whether a tree of runs is to stop, and has messages to read, as `stop_requested` and
    `has_messages`, and for the user's `tokens_today`. That is exact in a transaction that holds its lease.
    """
    return await tx.execute(_SIGNALS, top=run.top_run_id)


async def send_record(tx: Transaction, run: Run, record: EventRecord) -> AsyncCursor[DictRow]:
    """Stores an entry, or how far it has grown, a model turn, a new call, or what became of a stored call.

    The row has what the database adds to the record. There is none for a call that has a result already, or whose
    approval was requested before.
    """
    match record:
        case Entry():
            statement = _STORE_ENTRY
        case ModelTurn():
            statement = _ADD_MODEL_TURN
        case ToolCall(state="requested" | "running"):
            statement = _ADD_CALL
        case ToolCall(state="awaiting_approval"):
            statement = _REQUEST_APPROVAL
        case ToolCall():
            statement = _COMPLETE_CALL
    values = {name: getattr(record, name) for name in record.__slots__}
    values = {name: _as_json(value) if isinstance(value, dict) else value for name, value in values.items()}
    return await tx.execute(statement, conversation=run.conversation_id, **values)


def _as_json(value: dict[str, Any] | None) -> Jsonb | None:
    return Jsonb(value) if value else None


async def send_usage(tx: Transaction, run: Run) -> None:
    await tx.execute(_STORE_USAGE, run=run.id, usage=_as_json(run.usage))


async def send_finish(tx: Transaction, run: Run, outcome: Outcome) -> AsyncCursor[DictRow]:
    """Stores the outcome; there is no row if a completed run has a message to read, or the lease is lost."""
    values = {"status": outcome, "usage": _as_json(run.usage), "error": run.error_code}
    finished = await tx.execute(_FINISH, run=run.id, process=run.process_id, **values)
    if outcome == "cancelled":
        await tx.execute(_DROP_QUEUE, run=run.id)
    return finished


async def send_changes(tx: Transaction, run_id: str, changes: Entry, status: Status) -> AsyncCursor[DictRow]:
    """Stores what a run has changed so far, before it gets this status; the row has the numbers of the entry.

    There is no row if there is nothing to say, or a completed run has a message to read.
    """
    details = Jsonb(changes.details) if any((changes.details or {}).values()) else None
    await tx.execute(_DROP_CHANGES, run=run_id)
    return await tx.execute(_ADD_CHANGES, run=run_id, id=changes.id, details=details, status=status)


async def read_numbers(changes: Entry, sent: AsyncCursor[DictRow]) -> None:
    """Gives the entry that `send_changes` has stored what the database has added to it."""
    for name, value in (await sent.fetchone() or {}).items():
        setattr(changes, name, value)


async def has_called(database: Database, user_id: str, top_run_id: str, tools: Collection[str]) -> bool:
    """Whether a tree of runs has made a call of one of these tools, whatever became of it."""
    return await database.fetch_one(user_id, _MADE_CALLS, top=top_run_id, tools=[*tools]) is not None


async def end_abandoned(
    database: Database, user_id: str, top_run_id: str, *, process_id: int, changes: Entry | None = None
) -> str | None:
    """Stores that a tree of runs was interrupted, as its process is gone, and keeps what was stored.

    `changes` are what it has changed, if that was read. Returns the id of its conversation; None if somebody has ended
    it already.
    """
    where = {"top": top_run_id, "process": process_id}
    async with database.transaction(user_id) as tx:
        locked = await tx.execute(_LOCK_ABANDONED, **where)
        if (row := await locked.fetchone()) is None:
            return None
        if changes is not None:
            await send_changes(tx, top_run_id, changes, "interrupted")
        await tx.execute(_END_TREE, status="interrupted", error="interrupted", **where)
        await _send_ends(tx, row["conversation_id"], code="interrupted", reason="ended")
        await tx.notify(CHANGED, top_run_id)
    return row["conversation_id"]


async def send_cancellations(
    tx: Transaction, conversation_id: str, *, reason: CallReason, unless: str | None = None
) -> AsyncCursor[DictRow]:
    """Cancels a run of a conversation that waits, but not the run `unless`, and rejects its calls."""
    cancelled = await tx.execute(_CANCEL_WAITING, conversation=conversation_id, unless=unless)
    await _send_ends(tx, conversation_id, code="cancelled", reason=reason)
    return cancelled


async def read_cancelled(cancellations: AsyncCursor[DictRow]) -> list[str]:
    return [row["id"] for row in await cancellations.fetchall() if row["parent_call_id"] is None]


async def _send_ends(tx: Transaction, conversation_id: str, *, code: str, reason: CallReason) -> None:
    where = {"conversation": conversation_id}
    await tx.execute(_CLOSE_CALLS, reason=reason, **where)
    await tx.execute(_COMPLETE_ENTRIES, **where)
    await tx.execute(_ADD_NOTICE, notice=new_id("ntc"), details=Jsonb({"code": code}), **where)
    await tx.execute(_NUMBER_ENDS, **where)


async def request_stop(database: Database, run: Run) -> tuple[bool, list[str]]:
    """Requests that a run's process stop it, or cancels a run that waits at once; drops the queued messages.

    Returns whether it was running, and the ids of runs that were cancelled.
    """
    async with database.transaction(run.user_id) as tx:
        stopping = await tx.execute(_REQUEST_STOP, run=run.id)
        await tx.notify(SIGNAL, run.id)
        cancelled = await send_cancellations(tx, run.conversation_id, reason="stopped")
        await tx.execute(_DROP_QUEUE, run=run.id)
    return await stopping.fetchone() is not None, await read_cancelled(cancelled)


async def add_usage(database: Database, user_id: str, run_id: str, usage: Mapping[str, int]) -> int:
    """Returns the model tokens that the user has used today."""
    tokens = {name: usage.get(name, 0) for name in ("input_tokens", "output_tokens")}
    row = await database.fetch_one(user_id, _ADD_USAGE, run=run_id, usage=Jsonb(dict(usage)), **tokens)
    return row["tokens_today"] if row else 0


async def load(database: Database, user_id: str, run_id: str) -> Run:
    if (run := await database.fetch_one(user_id, _LOAD, Run, run=run_id)) is None:
        raise NotFound.of("interaction", run_id)
    return run


async def load_running(database: Database, user_id: str) -> list[Run]:
    return await database.fetch_all(user_id, _RUNNING, Run)


async def load_active(database: Database, user_id: str, conversation_id: str | None) -> Run | None:
    """Loads the run of a conversation that runs or waits, if there is one."""
    return await database.fetch_one(user_id, _ACTIVE, Run, conversation=conversation_id)
