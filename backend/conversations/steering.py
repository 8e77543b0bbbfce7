"""Messages to a run that is running: entries without a number, until the model reads them or they start a run."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from psycopg.types.json import Jsonb

from backend.conversations import runs
from backend.conversations.approvals import send_rejections
from backend.conversations.errors import MessageRead, RunEnded
from backend.conversations.history import send_history
from backend.conversations.records import Entry, Run
from backend.conversations.run_requests import MOMENT, StartedRun, UserMessage, send_moment
from backend.conversations.runs import SIGNAL
from backend.conversations.timeline import ENTRY_COLUMNS, RUN_COLUMNS
from backend.errors import LimitReached, NotFound
from backend.ids import new_id
from backend.users import idempotency
from backend.users.idempotency import KeyedResponse
from backend.users.limits import UserLimits, send_request
from common.database import Database

Mode = Literal["steer", "follow_up"]
MAX_QUEUED = 20

# FOR SHARE: it is not stored after its run has ended, as ending takes a stronger lock on the same row.
# A run that waited, and goes on in this transaction, reads the message at once.
_ADD = f"""
INSERT INTO entries (user_id, run_id, id, conversation_id, kind, text, details, seq)
SELECT r.user_id, r.id, %(id)s, r.conversation_id, 'user_message', %(text)s, %(details)s || {MOMENT} ||
    jsonb_build_object('mode', CASE WHEN r.running_since = now() THEN 'steer' ELSE %(mode)s END), NULL
FROM runs r LEFT JOIN profiles p ON p.user_id = r.user_id
WHERE r.user_id = %(user)s AND r.id = %(run)s AND r.status IN ('running', 'waiting')
  AND (SELECT count(*) FROM entries WHERE user_id = %(user)s AND run_id = %(run)s AND seq IS NULL) < %(most)s
FOR SHARE OF r
RETURNING run_id"""
_DROP_FOLLOW_UPS = """
DELETE FROM entries
WHERE user_id = %(user)s AND run_id = %(run)s AND seq IS NULL AND details->>'mode' = 'follow_up'
RETURNING id"""
_COUNT = "SELECT count(*) AS queued FROM entries WHERE user_id = %(user)s AND run_id = %(run)s AND seq IS NULL"
# Only on the shown path: what was queued on another one is shown with that.
_UNREAD = """
SELECT e.id, e.run_id, e.text, e.details, e.details->>'mode' AS mode, e.created_at,
    r.status IN ('running', 'waiting') AS is_queued
FROM entries e JOIN runs r ON r.user_id = e.user_id AND r.id = e.run_id
WHERE e.user_id = %(user)s AND e.conversation_id = %(conversation)s AND e.seq IS NULL AND r.active
ORDER BY e.created_at, e.id"""
_DROP = """
DELETE FROM entries
WHERE user_id = %(user)s AND conversation_id = %(conversation)s AND id = %(id)s AND seq IS NULL
RETURNING id"""
_STEER = """
UPDATE entries e SET details = e.details || '{"mode": "steer"}' FROM runs r
WHERE e.user_id = %(user)s AND e.conversation_id = %(conversation)s AND e.id = %(id)s AND e.seq IS NULL
  AND r.user_id = e.user_id AND r.id = e.run_id AND r.status IN ('running', 'waiting')
RETURNING pg_notify(%(signal)s, e.run_id)"""
_FIND = """
SELECT seq FROM entries
WHERE user_id = %(user)s AND conversation_id = %(conversation)s AND id = %(id)s AND kind = 'user_message'"""
# Numbered in the order in which they were sent: an update alone takes the rows as they happen to be stored.
_READ = f"""
WITH numbered AS MATERIALIZED (
    SELECT id, nextval('event_seq') AS number FROM (
        SELECT id FROM entries
        WHERE user_id = %(user)s AND run_id = %(run)s AND seq IS NULL AND details->>'mode' = 'steer'
        ORDER BY created_at, id
    ) sent
)
UPDATE entries e SET seq = numbered.number FROM numbered
WHERE e.user_id = %(user)s AND e.run_id = %(run)s AND e.id = numbered.id AND e.seq IS NULL
RETURNING {ENTRY_COLUMNS}"""
_QUEUED = f"""
SELECT {ENTRY_COLUMNS} FROM entries e WHERE e.user_id = %(user)s AND e.run_id = %(run)s AND e.seq IS NULL
ORDER BY e.created_at, e.id"""
# The first starts a run, also if somebody has made a steering message of it since the queue was read.
_MOVE = """
UPDATE entries SET run_id = %(next)s, seq = CASE WHEN id = %(first)s THEN nextval('event_seq') END,
    details = CASE WHEN id = %(first)s THEN details || '{"mode": "follow_up"}' ELSE details END
WHERE user_id = %(user)s AND run_id = %(run)s AND seq IS NULL"""
_CONTINUE = f"""
INSERT INTO runs AS r (user_id, id, conversation_id, top_run_id, agent, status, process_id, options, previous_run_id)
SELECT p.user_id, %(next)s, p.conversation_id, %(next)s, p.agent, 'running', %(process)s, p.options - 'schedule', p.id
FROM runs p WHERE p.user_id = %(user)s AND p.id = %(run)s
RETURNING {RUN_COLUMNS}"""


@dataclass(frozen=True, slots=True)
class UnreadMessage:
    """A message that no model has read; it `is_queued` while its run goes on, and unsent after that."""

    id: str
    run_id: str
    text: str
    details: dict[str, Any]
    mode: Mode
    is_queued: bool
    created_at: datetime


async def add(
    database: Database,
    run: Run,
    message: UserMessage,
    mode: Mode,
    *,
    process_id: int,
    limits: UserLimits,
    response: KeyedResponse | None = None,
) -> tuple[list[Run], list[str]]:
    """Queues a message of a running run: it is read before the next request to the model, or answered in a run of its
    own afterwards. A steering message drops the follow-ups that are queued. A run that waits for approval is resumed in
    this process, and its calls are rejected.

    Returns the runs of that tree, whose lease this process now holds, and the ids of the follow-ups that were dropped.
    With a key, that and the response are stored, too. Raises `RunEnded`, `LimitReached` and `KeyStored`; then nothing
    is stored.
    """
    values = {"id": message.id, "text": message.text, "details": Jsonb(message.details or {}), "mode": mode}
    async with database.transaction(run.user_id) as tx:
        if response is not None:
            await idempotency.send_key(tx, response.key)
        resumed = await send_rejections(tx, run, process_id=process_id)
        dropped = await tx.execute(_DROP_FOLLOW_UPS, run=run.id) if mode == "steer" else None
        queued = await tx.execute(_COUNT, run=run.id)
        moment = await send_moment(tx, message.moment)
        added = await tx.execute(_ADD, run=run.id, most=MAX_QUEUED, **values, **moment)
        await send_request(tx, limits, is_new=False)
        await tx.notify(SIGNAL, run.id)
        if await added.fetchone() is None:  # read here, so that nothing is stored
            count = await queued.fetchone()
            if count is not None and count["queued"] >= MAX_QUEUED:
                raise LimitReached(f"Up to {MAX_QUEUED} messages can wait for an answer. Wait until some were read.")
            raise RunEnded
        dropped_ids = [row["id"] for row in await dropped.fetchall()] if dropped is not None else []
        if response is not None:
            await response.send(tx, dropped_ids)
    return await resumed.fetchall(), dropped_ids


async def load_unread(database: Database, user_id: str, conversation_id: str) -> list[UnreadMessage]:
    return await database.fetch_all(user_id, _UNREAD, UnreadMessage, conversation=conversation_id)


async def drop(database: Database, user_id: str, conversation_id: str, message_id: str) -> None:
    """Deletes a message that no model has read. Raises `NotFound`, and `MessageRead` for one that was read."""
    where = {"conversation": conversation_id, "id": message_id}
    async with database.transaction(user_id) as tx:
        dropped = await tx.execute(_DROP, **where)
        found = await tx.execute(_FIND, **where)
    if await dropped.fetchone() is None:
        raise NotFound.of("message", message_id) if await found.fetchone() is None else MessageRead()


async def steer(database: Database, user_id: str, conversation_id: str, message_id: str) -> None:
    """Turns a queued follow-up into a steering message, which the model reads before its next request.

    Raises `NotFound`, `MessageRead` for one that was read, and `RunEnded` for one whose run has ended.
    """
    where = {"conversation": conversation_id, "id": message_id}
    async with database.transaction(user_id) as tx:
        steered = await tx.execute(_STEER, signal=SIGNAL, **where)
        found = await tx.execute(_FIND, **where)
    if await steered.fetchone() is None:
        message = await found.fetchone()
        if message is None:
            raise NotFound.of("message", message_id)
        raise RunEnded if message["seq"] is None else MessageRead


async def take_messages(database: Database, run: Run) -> list[Entry]:
    async with database.transaction(run.user_id) as tx:
        await runs.hold(tx, run)
        taken = await tx.execute(_READ, Entry, run=run.id)
    return sorted(await taken.fetchall(), key=lambda entry: entry.seq or 0)


async def load_queue(database: Database, user_id: str, run_id: str) -> list[Entry]:
    return await database.fetch_all(user_id, _QUEUED, Entry, run=run_id)


async def start_follow_up(database: Database, run: Run, *, changes: Entry | None = None) -> StartedRun | None:
    """Completes a run and starts the one that answers its first follow-up, with the rest of the queue.

    `changes` are what the completed run has changed; they get their numbers.

    Does nothing and returns None if a steering message is queued.
    """
    queue = await load_queue(database, run.user_id, run.id)
    if not queue or any((entry.details or {}).get("mode") == "steer" for entry in queue):
        return None
    where = {"run": run.id, "next": new_id("run")}
    async with database.transaction(run.user_id) as tx:
        await runs.hold(tx, run)
        await tx.execute(_MOVE, first=queue[0].id, **where)
        added = await runs.send_changes(tx, run.id, changes, "completed") if changes is not None else None
        await runs.send_finish(tx, run, "completed")
        started = await tx.execute(_CONTINUE, Run, process=run.process_id, **where)
        sent = await send_history(tx, run.conversation_id)
    following = await started.fetchone()
    assert following is not None
    if changes is not None and added is not None:
        await runs.read_numbers(changes, added)
    return StartedRun(following, await sent.fetch())
