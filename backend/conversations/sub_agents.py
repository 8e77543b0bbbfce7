"""The runs of sub-agents in SQL: each is started by a tool call and is part of the tree of its top run."""

from dataclasses import dataclass
from typing import Any

from psycopg.types.json import Jsonb

from backend.conversations.records import Entry, Run, Timeline
from backend.conversations.runs import hold
from backend.conversations.timeline import (
    ENTRY_COLUMNS,
    REPLAY_COLUMNS,
    RUN_COLUMNS,
    RUN_OF_CALL,
    RecordStatements,
    all_records,
)
from backend.errors import NotFound
from backend.ids import new_id
from backend.users.limits import lock_user
from common.database import Database

_LOAD = f"""
SELECT {RUN_COLUMNS} FROM runs r
WHERE r.user_id = %(user)s AND r.parent_run_id = %(parent)s AND r.parent_call_id = %(call)s"""
_OF_CALL = f"""
SELECT {RUN_COLUMNS} FROM runs r
WHERE r.user_id = %(user)s AND r.parent_call_id = %(call)s AND r.parent_run_id = ({RUN_OF_CALL})"""
# Their assignments name the task; of the details only what tells which files were written.
_CALLS_FOR_TASK = """
SELECT c.conversation_id, c.tool, jsonb_strip_nulls(jsonb_build_object(
    'ok', c.details->'ok', 'path', c.details->'path', 'bytes', c.details->'bytes', 'files', c.details->'files'
)) AS details
FROM runs r
JOIN entries e ON e.user_id = r.user_id AND e.run_id = r.id AND e.kind = 'user_message'
JOIN tool_calls c ON c.user_id = r.user_id AND c.run_id = r.id
WHERE r.user_id = %(user)s AND r.parent_call_id IS NOT NULL AND e.details->>'task_id' = %(task)s
  AND c.state IN ('done', 'failed') AND (c.details ? 'path' OR c.details ? 'files')
ORDER BY c.result_seq DESC LIMIT 1000"""
_START = f"""
INSERT INTO runs AS r
    (user_id, id, conversation_id, top_run_id, agent, status, process_id, options, parent_run_id, parent_call_id)
SELECT p.user_id, %(run)s, p.conversation_id, p.top_run_id, %(agent)s, 'running', p.process_id, p.options, p.id,
    %(call)s
FROM runs p WHERE p.user_id = %(user)s AND p.id = %(parent)s AND (%(per_day)s::int IS NULL OR %(per_day)s > (
    SELECT count(*) FROM runs
    WHERE user_id = %(user)s AND parent_call_id IS NOT NULL AND created_at > now() - interval '1 day'
))
RETURNING {RUN_COLUMNS}"""
_ADD_ASSIGNMENT = f"""
INSERT INTO entries AS e (user_id, run_id, id, conversation_id, kind, text, details)
SELECT r.user_id, r.id, %(message)s, r.conversation_id, 'user_message', %(text)s, %(details)s
FROM runs r WHERE r.user_id = %(user)s AND r.id = %(run)s
RETURNING {ENTRY_COLUMNS}"""
_OF_RUN = all_records("ARRAY[%(run)s, %(top)s]")
# All of the run, and the user's messages to its top run.
_RECORDS = RecordStatements(
    f"{_OF_RUN.entries} AND (e.run_id = %(run)s OR e.kind = 'user_message')",
    f"{_OF_RUN.calls} AND c.run_id = %(run)s",
    f"""
SELECT {REPLAY_COLUMNS} FROM model_turns t
WHERE t.user_id = %(user)s AND t.run_id = %(run)s AND t.replay IS NOT NULL""",
)


@dataclass(frozen=True, slots=True)
class CallForTask:
    conversation_id: str
    tool: str
    details: dict[str, Any]


async def find(database: Database, parent: Run, call_id: str) -> Run | None:
    return await database.fetch_one(parent.user_id, _LOAD, Run, parent=parent.id, call=call_id)


async def find_in_conversation(database: Database, user_id: str, conversation_id: str, call_id: str) -> Run:
    run = await database.fetch_one(user_id, _OF_CALL, Run, conversation=conversation_id, call=call_id)
    if run is None:
        raise NotFound.of("call", call_id)
    return run


async def load_calls_for_task(database: Database, user_id: str, task_id: int) -> list[CallForTask]:
    return await database.fetch_all(user_id, _CALLS_FOR_TASK, CallForTask, task=str(task_id))


async def start(
    database: Database,
    parent: Run,
    call_id: str,
    agent: str,
    assignment: str,
    details: dict[str, Any],
    *,
    per_day: int | None,
) -> tuple[Run, Entry] | None:
    """Stores the run of a tool call; None if its user has started `per_day` of them in a day. Raises `LeaseLost`."""
    where = {"parent": parent.id, "call": call_id, "run": new_id("run")}
    async with database.transaction(parent.user_id) as tx:
        await hold(tx, parent)
        await lock_user(tx)
        started = await tx.execute(_START, Run, agent=agent, per_day=per_day, **where)
        added = await tx.execute(
            _ADD_ASSIGNMENT, Entry, message=new_id("msg"), text=assignment, details=Jsonb(details), **where
        )
    run, entry = await started.fetchone(), await added.fetchone()
    return (run, entry) if run is not None and entry is not None else None


async def load_run(database: Database, run: Run) -> Timeline:
    return await _RECORDS.load(database, run.user_id, run=run.id, top=run.top_run_id)
