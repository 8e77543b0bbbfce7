"""The statements of every turn, built of the tables and compiled once, and how they are sent."""

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from chatkit.types import ThreadItem
from psycopg.types.json import Jsonb
from sqlalchemy import Integer, bindparam, column, func, select, true
from sqlalchemy.dialects.postgresql import JSONB, insert

from backend import leases
from backend.identity import RequestContext
from backend.leases import CONVERSATIONS
from backend.models import Message
from backend.rows import from_item
from database import Pipeline, Statement
from database.pipeline import Result

MESSAGES = Message.metadata.tables["messages"]
_WRITTEN = ("conversation_id", "id", "user_id", "run_id", "role", "kind", "item", "created_at")
_THREAD, _OWNER = bindparam("thread"), bindparam("owner")
LOAD_THREAD = Statement(select(CONVERSATIONS).where(CONVERSATIONS.c.id == _THREAD, CONVERSATIONS.c.user_id == _OWNER))


def _write(*, fenced: bool) -> Statement:
    """Insert the rows of a JSON array, in order, or bring those already there up to date; returns the ids."""
    columns = [MESSAGES.c[name] for name in _WRITTEN]
    given = func.jsonb_to_recordset(bindparam("rows", type_=JSONB)).table_valued(
        *(column(one.name, one.type) for one in columns), column("n", Integer)
    )
    rows = given.render_derived(name="given", with_types=True)
    values = select(*(rows.c[name] for name in _WRITTEN)).order_by(rows.c.n)
    if fenced:  # nothing is written without the lease, which is held until the commit
        values = values.join_from(rows, leases.HELD.cte("held"), true())
    added = insert(MESSAGES).from_select(_WRITTEN, values)
    return Statement(
        added.on_conflict_do_update(
            index_elements=["conversation_id", "id"],
            set_={"item": added.excluded.item},
            where=MESSAGES.c.user_id == _OWNER,
        ).returning(MESSAGES.c.id)
    )


_WRITE, _WRITE_AS_TURN = _write(fenced=False), _write(fenced=True)
_NEW_CONVERSATION = Statement(
    insert(CONVERSATIONS).values(
        id=_THREAD, user_id=_OWNER, title=bindparam("title"), status=bindparam("status", type_=JSONB)
    )
)


async def send_conversation(pipeline: Pipeline, thread_id: str, *, user_id: str, title: str | None) -> None:
    status = Jsonb({"type": "active"})
    await pipeline.send(_NEW_CONVERSATION, thread=thread_id, owner=user_id, title=title, status=status)


async def send_items(
    pipeline: Pipeline, thread_id: str, items: Sequence[ThreadItem], context: RequestContext
) -> Result:
    """Insert items, or bring those already there up to date. Fewer rows than items mean that the lease was lost."""
    rows = [{"n": n, **from_item(thread_id, item, context)} for n, item in enumerate(items)]
    turn = context.turn
    statement, run = (_WRITE_AS_TURN, {"run": turn.run_id}) if turn else (_WRITE, {})
    return await pipeline.send(statement, rows=Jsonb(rows, _dumps), owner=context.user_id, **run)


def _dumps(rows: Any) -> str:
    return json.dumps(rows, default=datetime.isoformat)
