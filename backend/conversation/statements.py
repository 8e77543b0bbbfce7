"""The statements of every turn, built of the tables and compiled once, and how they are sent."""

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from psycopg.types.json import Jsonb
from sqlalchemy import Integer, Select, Text, bindparam, cast, column, func, select, true
from sqlalchemy.dialects.postgresql import JSONB, insert

from backend.conversation.acting import Acting
from backend.conversation.models import Message
from backend.conversation.rows import Storable, StoredItem, from_item
from backend.conversation.runs import leases
from backend.conversation.runs.leases import CONVERSATIONS
from service.database import Pipeline, Statement
from service.database.pipeline import Result

MESSAGES = Message.metadata.tables["messages"]
_WRITTEN = ("conversation_id", "id", "user_id", "run_id", "role", "kind", "item", "created_at")
PAGE_BYTES = 500_000  # of items, as JSON
_CONVERSATION, _OWNER = bindparam("conversation"), bindparam("owner")
LOAD_CONVERSATION = Statement(
    select(CONVERSATIONS).where(CONVERSATIONS.c.id == _CONVERSATION, CONVERSATIONS.c.user_id == _OWNER)
)


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
            index_elements=["user_id", "conversation_id", "id"],
            set_={"item": added.excluded.item},
        ).returning(MESSAGES.c.id)
    )


_WRITE, _WRITE_AS_TURN = _write(fenced=False), _write(fenced=True)
_NEW_CONVERSATION = Statement(
    insert(CONVERSATIONS).values(
        id=_CONVERSATION, user_id=_OWNER, title=bindparam("title"), status=bindparam("status", type_=JSONB)
    )
)


async def send_conversation(pipeline: Pipeline, conversation_id: str, *, user_id: str, title: str | None) -> None:
    status = Jsonb({"type": "active"})
    await pipeline.send(_NEW_CONVERSATION, conversation=conversation_id, owner=user_id, title=title, status=status)


async def send_items(pipeline: Pipeline, conversation_id: str, items: Sequence[Storable], acting: Acting) -> Result:
    """Insert items, or bring those already there up to date. Fewer rows than items mean that the lease was lost."""
    rows = [{"n": n, **from_item(conversation_id, item, acting)} for n, item in enumerate(items)]
    statement, run = (_WRITE_AS_TURN, {"run": acting.run_id}) if acting.run_id else (_WRITE, {})
    return await pipeline.send(statement, rows=Jsonb(rows, _dumps), owner=acting.user_id, **run)


def _dumps(rows: Any) -> str:
    return json.dumps(rows, default=datetime.isoformat)


def within_bytes(page: Select[Any], *, newest_first: bool) -> Select[Any]:
    """Of a page's rows, in its order, those that fit into the bytes of one, the first in any case.

    The last column, `found`, is how many the page had before: the others never leave the database.
    """
    rows = page.subquery("page")
    order = rows.c.seq.desc() if newest_first else rows.c.seq.asc()
    before = func.sum(func.octet_length(cast(rows.c.item, Text))).over(order_by=order, rows=(None, -1))
    sized = select(rows, func.count().over().label("found"), before.label("before")).subquery("sized")
    kept = select(*(sized.c[name] for name in StoredItem._fields), sized.c.found)
    kept = kept.where(func.coalesce(sized.c.before, 0) < PAGE_BYTES)
    return kept.order_by(sized.c.seq.desc() if newest_first else sized.c.seq.asc())
