"""Starts runs: with a message, or the message of a run that is replaced, in one transaction that takes the lease."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from psycopg.types.json import Jsonb

from backend.conversations.conversations import first_words, send_conversation
from backend.conversations.history import send_history
from backend.conversations.records import ASSISTANT, ConversationHead, Run, Timeline
from backend.conversations.runs import read_cancelled, send_cancellations
from backend.conversations.timeline import RUN_COLUMNS
from backend.errors import Busy
from backend.ids import new_id
from backend.users import idempotency, profiles, schedules
from backend.users.idempotency import IdempotencyKey
from backend.users.limits import UserLimits, send_request
from backend.users.schedules import TakenOccurrence
from common.database import Database, Transaction

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
# The time and zone of a user's message, and what notifies them; `p` is their profile, and `r` the run.
MOMENT = """
CASE WHEN %(now)s::text IS NULL THEN '{}'::jsonb ELSE jsonb_strip_nulls(jsonb_build_object(
    'now', %(now)s::text,
    'time_zone', coalesce(%(time_zone)s::text, p.time_zone, %(server_time_zone)s::text),
    'calendar', CASE WHEN p.calendar_hash IS NOT NULL THEN true END,
    'notifications', CASE WHEN EXISTS (
        SELECT FROM alert_settings s WHERE s.user_id = r.user_id AND s.is_on
    ) THEN true END
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


@dataclass(frozen=True, slots=True)
class MessageTime:
    """When a user says something, and in which time zone.

    It is the one that the request names, else the one of their profile, else the server's.
    """

    now: datetime
    time_zone: str | None
    server_time_zone: str


@dataclass(frozen=True, slots=True)
class UserMessage:
    """What a user says; `text` has tasks by their titles, below what is quoted.

    `details` may hold `content`, the parts as ChatKit has them, where some are tags, and what is stored of its `moment`
    as `now`, `time_zone`, `calendar`, whether the user has a calendar feed, and `notifications`, whether they are on.
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
    `taken` is the occurrence of the schedule that starts the run.
    """

    conversation_id: str
    message: UserMessage | None
    new: NewConversation | None = None
    replaces: str | None = None
    options: dict[str, Any] | None = None
    key: IdempotencyKey | None = None
    moment: MessageTime | None = None
    taken: TakenOccurrence | None = None


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

    A waiting run is cancelled, as its user said something else instead, but by no schedule. Raises `Busy`, `NotFound`,
    `LimitReached`, `NameTaken`, `ScheduleTaken`, or `KeyStored` if its key has been used. Nothing is stored then.
    """
    try:
        return await _start(database, user_id, request, process_id, limits, cancel_waiting=False)
    except Busy:  # to cancel is costly in a long conversation, so it is done only if another run may wait
        if request.taken is not None:
            raise
        return await _start(database, user_id, request, process_id, limits, cancel_waiting=True)


async def _start(
    database: Database, user_id: str, request: RunRequest, process_id: int, limits: UserLimits, *, cancel_waiting: bool
) -> StartedRun:
    conversation_id, run_id = request.conversation_id, new_id("run")
    where = {"conversation": conversation_id, "run": run_id, "replaces": request.replaces}
    cancelled = None
    async with database.transaction(user_id) as tx:
        if request.new is not None:
            title = first_words(request.message.text) if request.message else None
            found = await send_conversation(
                tx, conversation_id, title=title, name=request.new.name, details=request.new.details
            )
        else:
            found = await tx.execute(_LOCK_CONVERSATION, ConversationHead, **where)
        if request.taken is not None:
            await schedules.send_taken(tx, request.taken, run_id, conversation_id)
        if cancel_waiting:
            cancelled = await send_cancellations(tx, conversation_id, reason="other_message")
        values = {"agent": ASSISTANT, "process": process_id, "options": Jsonb(request.options or {})}
        started = await tx.execute(_START, Run, **values, **where)
        await tx.execute(_REQUIRE_STARTED, **where)
        await _send_message(tx, request, where)
        await send_request(tx, limits, is_new=request.new is not None)
        if request.key is not None:
            await idempotency.send_key(tx, request.key, run_id=run_id)
        sent = await send_history(tx, conversation_id)
    run = await started.fetchone()
    assert run is not None
    ids = await read_cancelled(cancelled) if cancelled else ()
    return StartedRun(run, await sent.fetch(), await found.fetchone(), ids)


async def _send_message(tx: Transaction, request: RunRequest, where: dict[str, str | None]) -> None:
    if request.replaces is not None:
        await tx.execute(_LEAVE_PATH, **where)
    elif request.new is None:
        await _send_note(tx, "branch", None, where)
    if request.message is None:
        await tx.execute(_COPY_MESSAGE, **where)
    else:
        values = await send_moment(tx, request.message.moment)
        details = Jsonb(request.message.details) if request.message.details else None
        message = {"message": request.message.id, "text": request.message.text, "details": details}
        await tx.execute(_ADD_MESSAGE, **message, **values, **where)
    if request.replaces is not None:  # only the note of a retry says when it was asked for
        reason, moment = ("retry", request.moment) if request.message is None else ("edit", None)
        await _send_note(tx, reason, moment, where)


async def _send_note(tx: Transaction, reason: str, moment: MessageTime | None, where: dict[str, str | None]) -> None:
    await tx.execute(_NOTE_LEFT, note=new_id("note"), reason=reason, **await send_moment(tx, moment), **where)


async def send_moment(tx: Transaction, moment: MessageTime | None) -> dict[str, str | None]:
    """Returns what the SQL of `MOMENT` needs, and stores the time zone of a user's first message."""
    if moment is None:
        return {"now": None, "time_zone": None, "server_time_zone": None}
    if moment.time_zone is not None:
        await profiles.send_first_time_zone(tx, moment.time_zone)
    now = moment.now.isoformat()
    return {"now": now, "time_zone": moment.time_zone, "server_time_zone": moment.server_time_zone}
