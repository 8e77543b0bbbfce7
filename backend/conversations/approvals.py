"""Tool calls that wait for approval: decided once, and what their user allows from then on."""

from collections.abc import Sequence
from dataclasses import dataclass

from psycopg import AsyncCursor
from psycopg.rows import DictRow

from backend.conversations.errors import AlreadyDecided, running_limit
from backend.conversations.records import CallState, Run, ToolCall
from backend.conversations.timeline import CALL_COLUMNS, RUN_COLUMNS, RUNS_OF_TREE
from backend.errors import NotFound
from backend.users.limits import lock_user
from common.database import Database, Transaction

_SET_STATE = """
UPDATE tool_calls SET state = %(state)s
WHERE user_id = %(user)s AND run_id = %(run)s AND id = %(id)s AND state IN ('requested', 'approved', 'running')"""
_AWAITS_APPROVAL = f"""
SELECT FROM tool_calls c
WHERE c.user_id = %(user)s AND c.run_id IN ({RUNS_OF_TREE}) AND c.state = 'awaiting_approval'"""
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
WHERE c.user_id = %(user)s AND c.id = %(call)s AND c.run_id IN ({RUNS_OF_TREE}) AND c.state = 'awaiting_approval'
  AND (%(state)s = 'rejected' OR %(most)s::int IS NULL
    OR EXISTS (SELECT FROM tool_calls o WHERE o.user_id = %(user)s AND o.run_id IN ({RUNS_OF_TREE})
               AND o.state = 'awaiting_approval' AND o.id <> c.id)
    OR %(most)s > (SELECT count(*) FROM runs
                   WHERE user_id = %(user)s AND status = 'running' AND parent_call_id IS NULL))
RETURNING {CALL_COLUMNS}"""
_STATE = f"SELECT state FROM tool_calls WHERE user_id = %(user)s AND id = %(call)s AND run_id IN ({RUNS_OF_TREE})"
_REJECT_ALL = f"""
UPDATE tool_calls SET state = 'rejected', decision_seq = nextval('event_seq'), result_seq = nextval('event_seq'),
    reason = 'other_message'
WHERE user_id = %(user)s AND run_id IN ({RUNS_OF_TREE}) AND state = 'awaiting_approval'"""
_APPROVALS = """
SELECT c.id, c.state, r.top_run_id FROM tool_calls c JOIN runs r ON r.user_id = c.user_id AND r.id = c.run_id
WHERE c.user_id = %(user)s AND c.conversation_id = %(conversation)s AND c.id = ANY(%(calls)s)
  AND c.approval_seq IS NOT NULL"""
# Tools whose calls a user allows, as long as what they may reach stays the same.
_ALLOW = """
INSERT INTO consents (user_id, conversation_id, tool, reach)
SELECT user_id, id, %(tool)s, %(reach)s FROM conversations WHERE user_id = %(user)s AND id = %(conversation)s
ON CONFLICT (user_id, conversation_id, tool) DO UPDATE SET reach = excluded.reach"""
_CONSENTS = "SELECT tool, reach FROM consents WHERE user_id = %(user)s AND conversation_id = %(conversation)s"


@dataclass(frozen=True, slots=True)
class Decision:
    """What the user decided about a call; `text` is what they said about it."""

    approved: bool
    text: str | None = None


async def send_state(tx: Transaction, run: Run, call: ToolCall, state: CallState) -> None:
    """Stores that a call begins, or as `requested` that it is made when its run resumes."""
    await tx.execute(_SET_STATE, run=run.id, id=call.id, state=state)


async def send_wait(tx: Transaction, top: Run) -> AsyncCursor[DictRow]:
    return await tx.execute(_WAIT, top=top.id)


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
    row = await database.fetch_one(user_id, _TOP_RUN, call=call_id, run=run_id)
    if row is None:
        raise NotFound.of("approval", call_id)
    where = {"top": row["top_run_id"], "call": call_id}
    state = "approved" if decision.approved else "rejected"
    values = {"state": state, "reason": None if decision.approved else "user", "text": decision.text}
    async with database.transaction(user_id) as tx:
        await tx.execute(_LOCK_RUN, **where)
        await lock_user(tx)
        decided = await tx.execute(_DECIDE, ToolCall, most=most_running, **values, **where)
        after = await tx.execute(_STATE, **where)
        resumed = await tx.execute(_RESUME, Run, process=process_id, **where)
    if (call := await decided.fetchone()) is None:
        left = await after.fetchone()
        raise running_limit(most_running or 0) if left and left["state"] == "awaiting_approval" else AlreadyDecided
    return call, await resumed.fetchall()


async def send_rejections(tx: Transaction, top: Run, *, process_id: int) -> AsyncCursor[Run]:
    """Rejects all that waits in a tree of runs, and lets it go on in this process; its runs are the rows."""
    await tx.execute(_LOCK_RUN, top=top.id)
    await tx.execute(_REJECT_ALL, top=top.id)
    return await tx.execute(_RESUME, Run, process=process_id, top=top.id)


async def load_approvals(
    database: Database, user_id: str, conversation_id: str, call_ids: Sequence[str]
) -> tuple[dict[str, CallState], set[str]]:
    """Loads the states of those calls whose approval was requested, and the ids of the runs at the top of their
    trees.
    """
    rows = await database.fetch_all(user_id, _APPROVALS, conversation=conversation_id, calls=list(call_ids))
    return {row["id"]: row["state"] for row in rows}, {row["top_run_id"] for row in rows}


async def allow(database: Database, user_id: str, conversation_id: str, tool: str, *, reach: str | None) -> None:
    await database.execute(user_id, _ALLOW, conversation=conversation_id, tool=tool, reach=reach)


async def load_consents(database: Database, user_id: str, conversation_id: str) -> dict[str, str | None]:
    rows = await database.fetch_all(user_id, _CONSENTS, conversation=conversation_id)
    return {row["tool"]: row["reach"] for row in rows}
