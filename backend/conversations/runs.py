"""The life of a run in SQL: started with its message in one transaction, ended once. Every write holds its lease.

A run's lease is its row's `process_id` with status `running`: the advisory lock of a process that is alive. Writes in
a tree of runs first lock its top run's row (`hold`), so that numbers of a tree are committed in their order.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from psycopg import AsyncCursor
from psycopg.rows import DictRow
from psycopg.types.json import Jsonb

from backend.conversations.conversations import first_words, send_conversation
from backend.conversations.history import send_history
from backend.conversations.records import CallReason, ConversationHead, Entry, ModelTurn, Outcome, Run, Timeline
from backend.conversations.timeline import RUN_COLUMNS
from backend.errors import Busy, NotFound
from backend.users import idempotency, profiles
from backend.users.idempotency import IdempotencyKey
from backend.users.limits import UserLimits, send_request
from common.database import Database, Transaction
from common.ids import new_id

ASSISTANT = "assistant"
SIGNAL = "run_signal"
"""The channel on which a run's process hears that there is a stop request or a message to read."""

_LOCK_CONVERSATION = """
SELECT title, created_at FROM conversations
WHERE user_id = %(user)s AND id = %(conversation)s FOR NO KEY UPDATE"""
# Lets the transaction fail where the conversation does not exist, or has another run.
_REQUIRE_STARTED = "SELECT require_started(%(conversation)s, %(run)s)"
# It continues the end of the shown path, or what the run that it replaces continued; that one must be shown.
_START = f"""
INSERT INTO runs AS r (user_id, id, conversation_id, top_run_id, agent, status, process_id, options, previous_run_id)
SELECT c.user_id, %(run)s, c.id, %(run)s, %(agent)s, 'running', %(process)s, %(options)s,
    CASE WHEN %(replaces)s::text IS NULL THEN (
        SELECT id FROM runs WHERE user_id = %(user)s AND conversation_id = c.id AND active AND parent_call_id IS NULL
        ORDER BY seq DESC LIMIT 1
    ) ELSE (SELECT previous_run_id FROM runs WHERE user_id = %(user)s AND id = %(replaces)s) END
FROM conversations c WHERE c.user_id = %(user)s AND c.id = %(conversation)s
  AND (%(replaces)s::text IS NULL
    OR EXISTS (SELECT FROM runs WHERE user_id = %(user)s AND id = %(replaces)s AND active))
ON CONFLICT (user_id, conversation_id) WHERE status IN ('running', 'waiting') AND parent_call_id IS NULL DO NOTHING
RETURNING {RUN_COLUMNS}"""
# When and where a user says something, and whether they have a calendar feed; `p` is their profile.
MOMENT = """
CASE WHEN %(now)s::text IS NULL THEN '{}'::jsonb ELSE jsonb_strip_nulls(jsonb_build_object(
    'now', %(now)s::text,
    'time_zone', coalesce(%(time_zone)s::text, p.time_zone, %(server_time_zone)s::text),
    'calendar', CASE WHEN p.calendar_hash IS NOT NULL THEN true END
)) END"""
_ADD_MESSAGE = f"""
INSERT INTO entries (user_id, run_id, id, conversation_id, kind, text, details)
SELECT r.user_id, r.id, %(message)s, r.conversation_id, 'user_message', %(text)s,
    nullif(coalesce(%(details)s::jsonb, '{{}}') || {MOMENT}, '{{}}')
FROM runs r LEFT JOIN profiles p ON p.user_id = r.user_id
WHERE r.user_id = %(user)s AND r.id = %(run)s"""
_COPY_MESSAGE = """
INSERT INTO entries (user_id, run_id, id, conversation_id, kind, text, details)
SELECT e.user_id, r.id, e.id, e.conversation_id, e.kind, e.text, e.details
FROM entries e JOIN runs r ON r.user_id = e.user_id AND r.id = %(run)s
WHERE e.user_id = %(user)s AND e.run_id = %(replaces)s AND e.kind = 'user_message' AND e.seq IS NOT NULL
ORDER BY e.seq LIMIT 1"""
# What runs have done that were left since the end of the path that this one continues: the tasks are as they left them.
_NOTE_LEFT = f"""
INSERT INTO entries (user_id, run_id, id, conversation_id, kind, details)
SELECT r.user_id, r.id, %(note)s, r.conversation_id, 'branch_note',
    jsonb_build_object('reason', %(reason)s::text, 'calls', coalesce(l.calls, '[]')) || {MOMENT}
FROM runs r LEFT JOIN profiles p ON p.user_id = r.user_id, LATERAL (
    SELECT jsonb_agg(jsonb_build_object('run_id', c.run_id, 'id', c.id) ORDER BY c.seq) AS calls FROM (
        SELECT c.run_id, c.id, c.seq FROM runs o JOIN tool_calls c ON c.user_id = o.user_id AND c.run_id = o.id
        WHERE o.user_id = r.user_id AND o.conversation_id = r.conversation_id AND NOT o.active
          AND o.parent_call_id IS NULL AND c.state NOT IN ('not_made', 'rejected')
          AND o.seq > coalesce((SELECT seq FROM runs WHERE user_id = r.user_id AND id = r.previous_run_id), 0)
        ORDER BY c.seq DESC LIMIT 200
    ) c
) l
WHERE r.user_id = %(user)s AND r.id = %(run)s AND (l.calls IS NOT NULL OR %(now)s::text IS NOT NULL)"""
# The replaced run and what follows it are shown no more.
_LEAVE_PATH = """
WITH RECURSIVE left_path AS (
    SELECT id FROM runs WHERE user_id = %(user)s AND id = %(replaces)s
    UNION ALL
    SELECT r.id FROM runs r JOIN left_path p ON r.previous_run_id = p.id
    WHERE r.user_id = %(user)s AND r.conversation_id = %(conversation)s AND r.active AND r.parent_call_id IS NULL
      AND r.id <> %(run)s
)
UPDATE runs SET active = false WHERE user_id = %(user)s AND id IN (SELECT id FROM left_path)"""
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
_SIGNALS = """
SELECT stop_requested,
    EXISTS (SELECT FROM entries WHERE user_id = %(user)s AND run_id = %(top)s AND seq IS NULL) AS has_messages
FROM runs WHERE user_id = %(user)s AND id = %(top)s"""
_STORE_ENTRY = """
INSERT INTO entries (user_id, run_id, id, conversation_id, kind, text, details, complete, model_turn)
VALUES (%(user)s, %(run)s, %(id)s, %(conversation)s, %(kind)s, %(text)s, %(details)s, %(complete)s, %(model_turn)s)
ON CONFLICT (user_id, run_id, id) DO UPDATE SET text = excluded.text, details = excluded.details,
    complete = excluded.complete, completion_seq = CASE WHEN excluded.complete THEN nextval('event_seq') END
RETURNING seq, last_seq, created_at"""
_ADD_MODEL_TURN = """
INSERT INTO model_turns (user_id, run_id, number, model, usage, seconds, finish_reason)
VALUES (%(user)s, %(run)s, %(number)s, %(model)s, %(usage)s, %(seconds)s, %(finish_reason)s)
ON CONFLICT (user_id, run_id, number) DO UPDATE SET seconds = excluded.seconds  -- sent again after a lost response
RETURNING seq"""
_STORE_USAGE = "UPDATE runs SET usage = %(usage)s WHERE user_id = %(user)s AND id = %(run)s"
# A run does not complete while there is a message that it has not read.
_FINISH = """
UPDATE runs SET status = %(status)s, process_id = NULL, usage = %(usage)s, error_code = %(error)s, ended_at = now(),
    end_seq = nextval('event_seq')
WHERE user_id = %(user)s AND id = %(run)s AND status = 'running' AND process_id = %(process)s
  AND (%(status)s <> 'completed'
       OR NOT EXISTS (SELECT FROM entries WHERE user_id = %(user)s AND run_id = %(run)s AND seq IS NULL))
RETURNING end_seq"""
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
_LOAD = f"SELECT {RUN_COLUMNS} FROM runs r WHERE r.user_id = %(user)s AND r.id = %(run)s"
_RUNNING = f"""
SELECT {RUN_COLUMNS} FROM runs r WHERE r.user_id = %(user)s AND r.status = 'running' AND r.parent_call_id IS NULL"""
# What a run uses after its end, for a summary or a title.
_ADD_USAGE = """
UPDATE runs SET usage = coalesce(usage, '{}') || (
    SELECT jsonb_object_agg(key, coalesce((usage->>key)::bigint, 0) + value::bigint) FROM jsonb_each_text(%(usage)s)
)
WHERE user_id = %(user)s AND id = %(run)s AND status NOT IN ('running', 'waiting')"""


@dataclass(frozen=True, slots=True)
class MessageTime:
    """When a user says something, and in which time zone.

    It is the one that their client names, else the one that it named last, else the server's.
    """

    now: datetime
    time_zone: str | None
    server_time_zone: str


@dataclass(frozen=True, slots=True)
class UserMessage:
    """What a user says; `text` has tasks by their titles, below what is quoted.

    `details` may hold `content`, the parts as ChatKit has them, where some are tags, and what is stored of its `moment`
    as `now`, `time_zone` and `calendar`, whether the user has a calendar feed.
    """

    id: str
    text: str
    details: dict[str, Any] | None = None
    moment: MessageTime | None = None


@dataclass(frozen=True, slots=True)
class NewConversation:
    """A conversation to be made with its first run; `name` is its name at the run API, if it has one."""

    name: str | None = None
    details: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class RunRequest:
    """What a run is started with: a message, or the message of the run that it `replaces`, to be answered again.

    `new` makes the conversation. A `key` lets the request start one run only. `moment` is that of an answer again.
    """

    conversation_id: str
    message: UserMessage | None
    new: NewConversation | None = None
    replaces: str | None = None
    options: dict[str, Any] | None = None
    key: IdempotencyKey | None = None
    moment: MessageTime | None = None


@dataclass(frozen=True, slots=True)
class StartedRun:
    """A run whose lease this process holds, and what the model reads of its conversation, up to its message.

    `conversation` is None for a run that continues another one. `cancelled` are the runs that waited in it.
    """

    run: Run
    timeline: Timeline
    conversation: ConversationHead | None = None
    cancelled: Sequence[str] = ()


async def start(
    database: Database, user_id: str, request: RunRequest, *, process_id: int, limits: UserLimits
) -> StartedRun:
    """Takes the lease, stores the message and reads the history: one round trip, two if another run waits.

    A waiting run is cancelled, as its user said something else instead. Raises `Busy`, `NotFound`, `LimitReached`,
    `NameTaken`, or `KeyStored` if its key has been used. Nothing is stored then.
    """
    try:
        return await _try_to_start(database, user_id, request, process_id, limits, cancels_waiting=False)
    except Busy:
        return await _try_to_start(database, user_id, request, process_id, limits, cancels_waiting=True)


async def _try_to_start(
    database: Database, user_id: str, request: RunRequest, process_id: int, limits: UserLimits, *, cancels_waiting: bool
) -> StartedRun:
    """Starts a run in one transaction; with `cancels_waiting` a run that waits is cancelled first.

    Raises as `start`.
    """
    where = {"user": user_id, "conversation": request.conversation_id, "run": new_id("run")}
    async with database.transaction(user_id) as tx:
        if request.new is not None:
            title = first_words(request.message.text) if request.message else None
            found = await send_conversation(
                tx, user_id, request.conversation_id, title=title, name=request.new.name, details=request.new.details
            )
        else:
            found = await tx.execute(_LOCK_CONVERSATION, ConversationHead, **where)
        cancelled = None
        if cancels_waiting:
            cancelled = await send_cancellations(tx, user_id, request.conversation_id, reason="other_message")
        replaces = {"replaces": request.replaces}
        values = {"agent": ASSISTANT, "process": process_id, "options": Jsonb(request.options or {})}
        started = await tx.execute(_START, Run, **values, **replaces, **where)
        await tx.execute(_REQUIRE_STARTED, **where)
        if request.replaces is not None:
            await tx.execute(_LEAVE_PATH, **replaces, **where)
        elif request.new is None:
            await tx.execute(_NOTE_LEFT, note=new_id("note"), reason="branch", **moment_values(None), **where)
        if request.message is not None:
            await _send_message(tx, user_id, where["run"], request.message)
        else:
            await tx.execute(_COPY_MESSAGE, **replaces, **where)
        if request.replaces is not None:
            await _send_note_of_replaced(tx, where, request)
        await send_request(tx, limits, is_new=request.new is not None)
        await idempotency.send_key(tx, request.key, run_id=where["run"])
        sent = await send_history(tx, user_id, request.conversation_id)
    run = await started.fetchone()
    assert run is not None
    ids = await read_cancelled(cancelled) if cancelled else ()
    return StartedRun(run, await sent.fetch(), await found.fetchone(), ids)


async def _send_message(tx: Transaction, user_id: str, run_id: str, message: UserMessage) -> None:
    """Stores a run's message, and the time zone that its user's client names."""
    values = await send_moment(tx, user_id, message.moment)
    details = Jsonb(message.details) if message.details else None
    await tx.execute(
        _ADD_MESSAGE, user=user_id, run=run_id, message=message.id, text=message.text, details=details, **values
    )


async def _send_note_of_replaced(tx: Transaction, where: Mapping[str, str], request: RunRequest) -> None:
    """Stores a note for the model: what the replaced answers have done, and for a retry also when it was asked for."""
    values = await send_moment(tx, where["user"], None if request.message else request.moment)
    reason = "edit" if request.message else "retry"
    await tx.execute(_NOTE_LEFT, note=new_id("note"), reason=reason, **values, **where)


async def send_moment(tx: Transaction, user_id: str, moment: MessageTime | None) -> dict[str, str | None]:
    """Stores the time zone that a client names, and returns what the SQL of `MOMENT` needs."""
    if moment is not None and moment.time_zone is not None:
        await profiles.send_time_zone(tx, user_id, moment.time_zone)
    return moment_values(moment)


def moment_values(moment: MessageTime | None) -> dict[str, str | None]:
    """Returns the parameters of the SQL of `MOMENT`."""
    if moment is None:
        return {"now": None, "time_zone": None, "server_time_zone": None}
    now = moment.now.isoformat()
    return {"now": now, "time_zone": moment.time_zone, "server_time_zone": moment.server_time_zone}


async def hold(tx: Transaction, run: Run) -> None:
    """Locks the top run until the transaction ends.

    The transaction fails with `LeaseLost` unless this process still holds the run's lease.
    """
    await tx.execute(_HOLD, top=run.top_run_id, process=run.process_id)


async def send_signals(tx: Transaction, run: Run) -> AsyncCursor[DictRow]:
    """Sends the query whether a tree of runs is to stop, and has messages to read, as `stop_requested` and
    `has_messages`. That is exact in a transaction that holds its lease.
    """
    return await tx.execute(_SIGNALS, user=run.user_id, top=run.top_run_id)


async def send_entry(tx: Transaction, run: Run, entry: Entry) -> AsyncCursor[DictRow]:
    """Stores an entry, or how far it has grown; the row has its `seq` and `last_seq`."""
    return await tx.execute(
        _STORE_ENTRY,
        user=run.user_id,
        run=run.id,
        conversation=run.conversation_id,
        id=entry.id,
        kind=entry.kind,
        text=entry.text,
        details=Jsonb(entry.details) if entry.details else None,
        complete=entry.complete,
        model_turn=entry.model_turn,
    )


async def send_model_turn(tx: Transaction, run: Run, turn: ModelTurn) -> AsyncCursor[DictRow]:
    """Stores a model turn; the row has its `seq`."""
    return await tx.execute(
        _ADD_MODEL_TURN,
        user=run.user_id,
        run=run.id,
        number=turn.model_turn,
        model=turn.model,
        usage=Jsonb(turn.usage) if turn.usage else None,
        seconds=turn.seconds,
        finish_reason=turn.finish_reason,
    )


async def send_usage(tx: Transaction, run: Run) -> None:
    """Stores what a run has used so far, before it waits: the process that continues it counts on from there."""
    await tx.execute(_STORE_USAGE, user=run.user_id, run=run.id, usage=Jsonb(run.usage) if run.usage else None)


async def send_finish(tx: Transaction, run: Run, outcome: Outcome) -> AsyncCursor[DictRow]:
    """Stores the outcome; there is no row if a completed run has a message to read, or the lease is lost.

    A cancelled run loses its queue of messages.
    """
    finished = await tx.execute(
        _FINISH,
        user=run.user_id,
        run=run.id,
        process=run.process_id,
        status=outcome,
        usage=Jsonb(run.usage) if run.usage else None,
        error=run.error_code,
    )
    if outcome == "cancelled":
        await tx.execute(_DROP_QUEUE, user=run.user_id, run=run.id)
    return finished


async def end_abandoned(database: Database, user_id: str, top_run_id: str, *, process_id: int, wake: str) -> str | None:
    """Stores that a tree of runs was interrupted, as its process is gone, and keeps what was stored.

    Returns the id of its conversation; None if somebody has ended it already.
    """
    where = {"user": user_id, "top": top_run_id, "process": process_id}
    async with database.transaction(user_id) as tx:
        locked = await tx.execute(_LOCK_ABANDONED, **where)
        if (row := await locked.fetchone()) is None:
            return None
        await tx.execute(_END_TREE, status="interrupted", error="interrupted", **where)
        await _send_ends(tx, user_id, row["conversation_id"], code="interrupted", reason="ended")
        await tx.notify(wake, top_run_id)
    return row["conversation_id"]


async def send_cancellations(
    tx: Transaction, user_id: str, conversation_id: str, *, reason: CallReason, unless: str | None = None
) -> AsyncCursor[DictRow]:
    """Cancels a run of a conversation that waits, but not the run `unless`, and rejects its calls."""
    cancelled = await tx.execute(_CANCEL_WAITING, user=user_id, conversation=conversation_id, unless=unless)
    await _send_ends(tx, user_id, conversation_id, code="cancelled", reason=reason)
    return cancelled


async def read_cancelled(cancellations: AsyncCursor[DictRow]) -> list[str]:
    """Returns the ids of the top runs that were cancelled."""
    return [row["id"] for row in await cancellations.fetchall() if row["parent_call_id"] is None]


async def _send_ends(tx: Transaction, user_id: str, conversation_id: str, *, code: str, reason: CallReason) -> None:
    """Closes the calls and entries of runs that this transaction has ended, adds notices and numbers their ends."""
    where = {"user": user_id, "conversation": conversation_id}
    await tx.execute(_CLOSE_CALLS, reason=reason, **where)
    await tx.execute(_COMPLETE_ENTRIES, **where)
    await tx.execute(_ADD_NOTICE, notice=new_id("ntc"), details=Jsonb({"code": code}), **where)
    await tx.execute(_NUMBER_ENDS, **where)


async def request_stop(database: Database, run: Run) -> tuple[bool, list[str]]:
    """Requests that a run's process stop it, or cancels a run that waits at once; drops the queued messages.

    Returns whether it was running, and the ids of runs that were cancelled.
    """
    where = {"user": run.user_id, "run": run.id}
    async with database.transaction(run.user_id) as tx:
        stopping = await tx.execute(_REQUEST_STOP, **where)
        await tx.notify(SIGNAL, run.id)
        cancelled = await send_cancellations(tx, run.user_id, run.conversation_id, reason="stopped")
        await tx.execute(_DROP_QUEUE, **where)
    return await stopping.fetchone() is not None, await read_cancelled(cancelled)


async def add_usage(database: Database, user_id: str, run_id: str, usage: Mapping[str, int]) -> None:
    """Adds to a run's stored usage what was used after its end, for its summary or title."""
    async with database.transaction(user_id) as tx:
        await tx.execute(_ADD_USAGE, user=user_id, run=run_id, usage=Jsonb(dict(usage)))


async def load(database: Database, user_id: str, run_id: str) -> Run:
    """Loads one run of a user, also a sub-agent's. Raises `NotFound`."""
    async with database.transaction(user_id) as tx:
        found = await tx.execute(_LOAD, Run, user=user_id, run=run_id)
    if (run := await found.fetchone()) is None:
        raise NotFound
    return run


async def load_running(database: Database, user_id: str) -> list[Run]:
    """Loads a user's runs that are being executed, without those of sub-agents."""
    async with database.transaction(user_id) as tx:
        found = await tx.execute(_RUNNING, Run, user=user_id)
    return await found.fetchall()
