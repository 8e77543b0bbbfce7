"""Tool calls in SQL: stored before they are made, completed once, approved or rejected once."""

from collections.abc import Sequence
from dataclasses import dataclass

from psycopg import AsyncCursor
from psycopg.rows import DictRow
from psycopg.types.json import Jsonb

from backend.conversations.errors import AlreadyDecided, running_limit
from backend.conversations.records import CallReason, CallState, Run, ToolCall
from backend.conversations.timeline import CALL_COLUMNS, RUN_COLUMNS, RUNS_OF_TREE
from backend.errors import NotFound
from backend.users.limits import lock_user
from common.database import Database, Transaction

_ADD = """
INSERT INTO tool_calls
    (user_id, run_id, id, conversation_id, model_turn, tool, arguments, state, idempotency_key, reach)
VALUES (%(user)s, %(run)s, %(id)s, %(conversation)s, %(model_turn)s, %(tool)s, %(arguments)s, %(state)s, %(key)s,
    %(reach)s)
RETURNING seq, created_at"""
# One that still waits for approval when its run ends is rejected.
_COMPLETE = """
UPDATE tool_calls SET state = CASE state WHEN 'awaiting_approval' THEN 'rejected' ELSE %(state)s END,
    output = %(output)s, details = %(details)s, seconds = %(seconds)s, reason = %(reason)s,
    decision_seq = CASE state WHEN 'awaiting_approval' THEN nextval('event_seq') ELSE decision_seq END,
    result_seq = nextval('event_seq')
WHERE user_id = %(user)s AND run_id = %(run)s AND id = %(id)s AND result_seq IS NULL
RETURNING state, decision_seq, result_seq"""
_REQUEST_APPROVAL = """
UPDATE tool_calls SET state = 'awaiting_approval', approval_seq = nextval('event_seq'), approval_text = %(text)s
WHERE user_id = %(user)s AND run_id = %(run)s AND id = %(id)s AND approval_seq IS NULL RETURNING approval_seq"""
# One that comes after a sub-agent that waits is made when that has ended.
_MAKE_LATER = """
UPDATE tool_calls SET state = 'requested'
WHERE user_id = %(user)s AND run_id = %(run)s AND id = %(id)s AND state = 'running'"""
_BEGIN = """
UPDATE tool_calls SET state = 'running'
WHERE user_id = %(user)s AND run_id = %(run)s AND id = %(id)s AND state IN ('requested', 'approved')"""
_AWAITS_APPROVAL = f"""
SELECT FROM tool_calls c
WHERE c.user_id = %(user)s AND c.run_id IN {RUNS_OF_TREE} AND c.state = 'awaiting_approval'"""
# The mirror of _RESUME: whichever of the last decision and the wait comes second finds what the other has stored.
_WAIT = f"""
UPDATE runs SET status = 'waiting', process_id = NULL
WHERE user_id = %(user)s AND top_run_id = %(top)s AND status = 'running' AND NOT stop_requested
  AND EXISTS ({_AWAITS_APPROVAL})
RETURNING id"""
_RESUME = f"""
UPDATE runs r SET status = 'running', process_id = %(process)s, running_since = now()
WHERE r.user_id = %(user)s AND r.top_run_id = %(top)s AND r.status = 'waiting' AND NOT EXISTS ({_AWAITS_APPROVAL})
RETURNING {RUN_COLUMNS}"""
_TOP_RUN = """
SELECT r.top_run_id FROM tool_calls c JOIN runs r ON r.user_id = c.user_id AND r.id = c.run_id
WHERE c.user_id = %(user)s AND c.id = %(call)s AND c.approval_seq IS NOT NULL
  AND (%(run)s::text IS NULL OR r.top_run_id = %(run)s)"""
_LOCK_RUN = "SELECT id FROM runs WHERE user_id = %(user)s AND id = %(top)s FOR NO KEY UPDATE"
_DECIDE = f"""
UPDATE tool_calls c SET state = %(state)s, decision_seq = nextval('event_seq'), decision_text = %(text)s,
    reason = %(reason)s, result_seq = CASE WHEN %(state)s = 'rejected' THEN nextval('event_seq') END
WHERE c.user_id = %(user)s AND c.id = %(call)s AND c.run_id IN {RUNS_OF_TREE} AND c.state = 'awaiting_approval'
  AND (%(state)s = 'rejected' OR %(most)s::int IS NULL
    OR EXISTS (SELECT FROM tool_calls o WHERE o.user_id = %(user)s AND o.run_id IN {RUNS_OF_TREE}
               AND o.state = 'awaiting_approval' AND o.id <> c.id)
    OR %(most)s > (SELECT count(*) FROM runs
                   WHERE user_id = %(user)s AND status = 'running' AND parent_call_id IS NULL))
RETURNING {CALL_COLUMNS}"""
_STATE = f"SELECT state FROM tool_calls WHERE user_id = %(user)s AND id = %(call)s AND run_id IN {RUNS_OF_TREE}"
_REJECT_ALL = f"""
UPDATE tool_calls SET state = 'rejected', decision_seq = nextval('event_seq'), result_seq = nextval('event_seq'),
    reason = 'other_message'
WHERE user_id = %(user)s AND run_id IN {RUNS_OF_TREE} AND state = 'awaiting_approval'"""

_APPROVALS = """
SELECT c.id AS call_id, c.state, r.top_run_id FROM tool_calls c JOIN runs r ON r.user_id = c.user_id AND r.id = c.run_id
WHERE c.user_id = %(user)s AND c.conversation_id = %(conversation)s AND c.id = ANY(%(calls)s)
  AND c.approval_seq IS NOT NULL"""


@dataclass(frozen=True, slots=True)
class Approval:
    """A call whose approval was asked for, and the run at the top of its tree."""

    call_id: str
    state: CallState
    top_run_id: str


@dataclass(frozen=True, slots=True)
class Decision:
    """What the user decided about a call; `text` is what they said about it."""

    approved: bool
    reason: CallReason = "user"
    text: str | None = None


async def send_call(tx: Transaction, run: Run, call: ToolCall) -> AsyncCursor[DictRow]:
    """Stores a call before it is made; the row has its `seq` and `created_at`."""
    return await tx.execute(
        _ADD,
        user=run.user_id,
        run=run.id,
        conversation=run.conversation_id,
        id=call.id,
        model_turn=call.model_turn,
        tool=call.tool,
        arguments=call.arguments,
        state=call.state,
        key=call.idempotency_key,
        reach=call.reach,
    )


async def send_result(tx: Transaction, run: Run, call: ToolCall) -> AsyncCursor[DictRow]:
    """Stores what became of a call, once; the row has its `result_seq`.

    A call that still waits for approval is rejected.
    """
    return await tx.execute(
        _COMPLETE,
        user=run.user_id,
        run=run.id,
        id=call.id,
        state=call.state,
        output=call.output,
        details=Jsonb(call.details) if call.details else None,
        seconds=call.seconds,
        reason=call.reason,
    )


async def send_approval_request(tx: Transaction, run: Run, call: ToolCall) -> AsyncCursor[DictRow]:
    """Stores that a call waits for its approval; the row has its `approval_seq`, and is missing if it was asked for
    before.
    """
    return await tx.execute(_REQUEST_APPROVAL, user=run.user_id, run=run.id, id=call.id, text=call.approval_text)


async def send_later(tx: Transaction, run: Run, call: ToolCall) -> None:
    """Stores that a call which has not begun is to be made when its run resumes."""
    await tx.execute(_MAKE_LATER, user=run.user_id, run=run.id, id=call.id)


async def send_begin(tx: Transaction, run: Run, call: ToolCall) -> None:
    """Stores that a call which has waited begins: its outcome is unknown until it has a result."""
    await tx.execute(_BEGIN, user=run.user_id, run=run.id, id=call.id)


async def send_wait(tx: Transaction, top: Run) -> AsyncCursor[DictRow]:
    """Stores that a tree of runs waits; there is no row if no call waits any more, or a stop was requested."""
    return await tx.execute(_WAIT, user=top.user_id, top=top.id)


async def decide(
    database: Database,
    user_id: str,
    call_id: str,
    decision: Decision,
    *,
    process_id: int,
    run_id: str | None = None,
    most_running: int | None = None,
) -> tuple[ToolCall, list[Run]]:
    """Decides a call once; returns it and, after the last decision, the runs of the tree, whose lease is this process's
    then. With a `run_id` only a call of that run or of its sub-agents is found. Raises `NotFound`, `AlreadyDecided`, or
    `LimitReached` for an approval with which more than `most_running` runs of the user would run.
    """
    async with database.transaction(user_id) as tx:
        found = await tx.execute(_TOP_RUN, user=user_id, call=call_id, run=run_id)
    if (row := await found.fetchone()) is None:
        raise NotFound
    where = {"user": user_id, "top": row["top_run_id"]}
    state = "approved" if decision.approved else "rejected"
    reason = None if decision.approved else decision.reason
    async with database.transaction(user_id) as tx:
        await tx.execute(_LOCK_RUN, **where)
        await lock_user(tx, user_id)
        decided = await tx.execute(
            _DECIDE, ToolCall, call=call_id, state=state, reason=reason, text=decision.text, most=most_running, **where
        )
        after = await tx.execute(_STATE, call=call_id, **where)
        resumed = await tx.execute(_RESUME, Run, process=process_id, **where)
    if (call := await decided.fetchone()) is None:
        left = await after.fetchone()
        raise running_limit(most_running or 0) if left and left["state"] == "awaiting_approval" else AlreadyDecided
    return call, await resumed.fetchall()


async def send_rejections(tx: Transaction, top: Run, *, process_id: int) -> AsyncCursor[Run]:
    """Rejects all that waits for approval in a tree of runs, as its user wrote something else instead.

    The tree goes on in this process; its runs are the rows.
    """
    where = {"user": top.user_id, "top": top.id}
    await tx.execute(_LOCK_RUN, **where)
    await tx.execute(_REJECT_ALL, **where)
    return await tx.execute(_RESUME, Run, process=process_id, **where)


async def load_approvals(
    database: Database, user_id: str, conversation_id: str, call_ids: Sequence[str]
) -> list[Approval]:
    """Loads those of these calls of a conversation whose approval was asked for."""
    where = {"user": user_id, "conversation": conversation_id, "calls": list(call_ids)}
    async with database.transaction(user_id) as tx:
        found = await tx.execute(_APPROVALS, Approval, **where)
    return await found.fetchall()
