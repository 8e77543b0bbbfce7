"""The statements of every turn, built of the tables and compiled once, and how they are sent."""

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from psycopg.types.json import Jsonb
from sqlalchemy import (
    ARRAY,
    ColumnElement,
    Integer,
    Select,
    Text,
    and_,
    bindparam,
    case,
    cast,
    column,
    func,
    literal,
    literal_column,
    select,
    text,
    true,
)
from sqlalchemy.dialects.postgresql import JSONB, insert

from backend.conversation.acting import Acting
from backend.conversation.items import Hidden, Said
from backend.conversation.models import Message, Profile
from backend.conversation.rows import VISIBLE, Storable, StoredItem, from_item
from backend.conversation.runs import leases
from backend.conversation.runs.leases import CONVERSATIONS
from service.database import Pipeline, Statement
from service.database.pipeline import Result

MESSAGES, PROFILES = Message.metadata.tables["messages"], Profile.metadata.tables["profiles"]
_WRITTEN = ("conversation_id", "id", "user_id", "run_id", "role", "kind", "item", "created_at", "usage")
# Of who has begun a turn: one that is refused stores nothing.
_KEEP_TIME_ZONE = Statement("""
    INSERT INTO profiles (user_id, time_zone)
    SELECT %(owner)s, %(zone)s
    WHERE EXISTS (SELECT FROM runs WHERE user_id = %(owner)s AND id = %(run)s AND status = 'running')
        AND NOT EXISTS (SELECT FROM profiles WHERE user_id = %(owner)s AND time_zone = %(zone)s)
    ON CONFLICT (user_id) DO UPDATE SET time_zone = excluded.time_zone
""")
PAGE_BYTES = 500_000  # of items, as JSON
_CONVERSATION, _OWNER = bindparam("conversation"), bindparam("owner")
LOAD_CONVERSATION = Statement(
    select(CONVERSATIONS, leases.ANSWERING.label("answering")).where(
        CONVERSATIONS.c.id == _CONVERSATION, CONVERSATIONS.c.user_id == _OWNER
    )
)


def _completed(item: ColumnElement[Any], *, in_kept_zone: bool) -> ColumnElement[Any]:
    """The note of what day and time it is, with what is known of the person here only.

    That there is an address of their calendar; and the zone that is kept of them, if there is one, where it is wanted.
    """
    kept, is_note = PROFILES.c.user_id == _OWNER, item["content"].has_key("time_zone")
    zone = select(PROFILES.c.time_zone).where(kept).scalar_subquery()
    moved = func.jsonb_set(item, literal_column("'{content,time_zone}'"), func.to_jsonb(zone))
    here = func.coalesce(case((is_note, moved)), item) if in_kept_zone else item
    fed = select(PROFILES.c.user_id).where(kept, PROFILES.c.calendar_hash.is_not(None)).exists()
    told = func.jsonb_set(here, literal_column("'{content,calendar}'"), literal_column("'true'::jsonb"))
    return case((and_(is_note, fed), told), else_=here)


def _write(lease: Select[Any] | None, *, beginning: bool = False, in_kept_zone: bool = False) -> Statement:
    """Insert the rows of a JSON array, in order, or bring those already there up to date; returns the ids."""
    columns = [MESSAGES.c[name] for name in _WRITTEN]
    given = func.jsonb_to_recordset(bindparam("rows", type_=JSONB)).table_valued(
        *(column(one.name, one.type) for one in columns), column("n", Integer)
    )
    rows = given.render_derived(name="given", with_types=True)
    written: dict[str, ColumnElement[Any]] = {name: rows.c[name] for name in _WRITTEN}
    if beginning:
        written["item"] = _completed(rows.c.item, in_kept_zone=in_kept_zone)
    values = select(*written.values()).order_by(rows.c.n)
    if lease is not None:  # nothing is written without it, and it is kept to the commit
        values = values.join_from(rows, lease.cte("held"), true())
    added = insert(MESSAGES).from_select(_WRITTEN, values)
    return Statement(
        added.on_conflict_do_update(
            index_elements=["user_id", "conversation_id", "id"],
            set_={"item": added.excluded.item},
        ).returning(MESSAGES.c.id)
    )


_WRITE, _WRITE_AS_TURN, _WRITE_ALONE = _write(None), _write(leases.HELD), _write(leases.LOCKED)
_WRITE_BEGINNING = _write(leases.HELD, beginning=True)
_WRITE_BEGINNING_IN_KEPT_ZONE = _write(leases.HELD, beginning=True, in_kept_zone=True)
_NEW_CONVERSATION = Statement(
    insert(CONVERSATIONS).values(
        id=_CONVERSATION,
        user_id=_OWNER,
        name=bindparam("name", type_=Text),
        title=bindparam("title"),
        status=bindparam("status", type_=JSONB),
        metadata=bindparam("details", type_=JSONB),
    )
)
LEFT = "left"
"""What the metadata of a conversation names that was begun in place of another: the id of that."""


async def send_conversation(
    pipeline: Pipeline,
    conversation_id: str,
    *,
    user_id: str,
    title: str | None,
    name: str | None = None,
    left: str | None = None,
) -> None:
    """Add a conversation. With a name that another of the person's has, the transaction fails.

    `left` is the id of the one that its person cleared to begin it.
    """
    whose = {"conversation": conversation_id, "owner": user_id}
    status, details = Jsonb({"type": "active"}), Jsonb({LEFT: left} if left else {})
    await pipeline.send(_NEW_CONVERSATION, **whose, name=name, title=title, status=status, details=details)


async def send_items(
    pipeline: Pipeline, conversation_id: str, items: Sequence[Storable], acting: Acting, *, fenced: bool = True
) -> Result:
    """Insert items, or bring those already there up to date. Fewer rows than items mean that the lease was lost.

    What is not `fenced` is of a run that waits or did: whoever writes it holds the run's row.
    """
    rows = _rows(conversation_id, items, acting)
    statement, run = (_WRITE_AS_TURN, {"run": acting.run_id}) if acting.run_id and fenced else (_WRITE, {})
    return await pipeline.send(statement, rows=rows, owner=acting.user_id, **run)


async def send_last_items(
    pipeline: Pipeline, conversation_id: str, items: Sequence[Storable], acting: Acting
) -> Result:
    """The same, and nobody else holds the run's row from here to the commit."""
    rows = _rows(conversation_id, items, acting)
    return await pipeline.send(_WRITE_ALONE, rows=rows, owner=acting.user_id, run=acting.run_id)


async def send_beginning(
    pipeline: Pipeline, conversation_id: str, items: Sequence[Hidden | Said], acting: Acting
) -> None:
    """Insert what a turn begins with: what the person said, and before it the note of what day and time it is.

    The note says, too, whether the person has a calendar. Where the request names no zone, it is in the one that is
    kept of them, else in the one it has.
    """
    rows = _rows(conversation_id, items, acting)
    statement = _WRITE_BEGINNING_IN_KEPT_ZONE if acting.time_zone is None else _WRITE_BEGINNING
    await pipeline.send(statement, rows=rows, owner=acting.user_id, run=acting.run_id)


def _rows(conversation_id: str, items: Sequence[Storable], acting: Acting) -> Jsonb:
    return Jsonb([{"n": n, **from_item(conversation_id, item, acting)} for n, item in enumerate(items)], _dumps)


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
    kept = select(*(sized.c[each.key] for each in rows.c), sized.c.found)
    kept = kept.where(func.coalesce(sized.c.before, 0) < PAGE_BYTES)
    return kept.order_by(sized.c.seq.desc() if newest_first else sized.c.seq.asc())


_MOST_DONE = 2_000  # rows of what was done


def done(where: ColumnElement[bool]) -> Statement:
    """The latest notes and calls of a part of a conversation that fit into a page's bytes."""
    rows = select(*(MESSAGES.c[name] for name in StoredItem._fields)).where(
        MESSAGES.c.user_id == bindparam("owner"),
        MESSAGES.c.conversation_id == bindparam("conversation"),
        MESSAGES.c.kind.in_([literal(kind) for kind in ("note", "tool_calls", "tool_output")]),
        where,
    )
    latest = rows.order_by(MESSAGES.c.seq.desc()).limit(literal(_MOST_DONE))
    return Statement(within_bytes(latest, newest_first=True))


async def done_rows(page: Result) -> list[StoredItem]:
    """The rows that `done` finds, in their order."""
    return sorted(StoredItem(*(row[name] for name in StoredItem._fields)) for row in await page.fetchall())


def within(text: str) -> Statement:
    """A statement about a conversation of a person, whose rows are those `IN_IT`."""
    return Statement(text.replace("IN_IT", "user_id = %(owner)s AND conversation_id = %(conversation)s"))


# Of a message of the person, the runs beside the one that it belongs to, where there are several.
_VERSIONS = """
CASE WHEN shown.kind = 'user_message' THEN (
    SELECT jsonb_build_object(
        'runs', jsonb_agg(beside.id ORDER BY beside.started_at, beside.id),
        'shown', max(beside.id) FILTER (WHERE beside.chosen),
        'message', max(beside.message_id) FILTER (WHERE beside.chosen)
    )
    FROM runs AS own, LATERAL (
        SELECT id, started_at, chosen, message_id FROM runs
        WHERE user_id = :owner AND conversation_id = :conversation AND parent_run_id = own.parent_run_id
        UNION ALL
        SELECT id, started_at, chosen, message_id FROM runs
        WHERE user_id = :owner AND conversation_id = :conversation AND parent_run_id IS NULL
            AND own.parent_run_id IS NULL
    ) AS beside
    WHERE own.user_id = :owner AND own.id = shown.run_id
    HAVING count(*) > 1
) END AS versions
"""
_AFTER = select(MESSAGES.c.seq).where(
    MESSAGES.c.user_id == _OWNER, MESSAGES.c.conversation_id == _CONVERSATION, MESSAGES.c.id == bindparam("after")
)
_IS_THERE = Statement(_AFTER)


def _page(*, newest_first: bool, after: bool) -> Statement:
    """What is shown of a conversation, one more than fits on a page, and beside each message its versions."""
    seq = MESSAGES.c.seq
    rows = select(*(MESSAGES.c[name] for name in StoredItem._fields), MESSAGES.c.run_id).where(
        MESSAGES.c.user_id == _OWNER,
        MESSAGES.c.conversation_id == _CONVERSATION,
        MESSAGES.c.kind == func.any(literal(list(VISIBLE), ARRAY(Text))),
        MESSAGES.c.superseded_by.is_(None),
    )
    if after:
        last = _AFTER.correlate(None).scalar_subquery()
        rows = rows.where(seq < last if newest_first else seq > last)
    rows = rows.order_by(seq.desc() if newest_first else seq.asc()).limit(bindparam("most", type_=Integer))
    shown = within_bytes(rows, newest_first=newest_first).subquery("shown")
    order = shown.c.seq.desc() if newest_first else shown.c.seq.asc()
    return Statement(select(shown, text(_VERSIONS)).order_by(order))


_PAGES = {
    (newest_first, after): _page(newest_first=newest_first, after=after)
    for newest_first in (False, True)
    for after in (False, True)
}


class SentPage(NamedTuple):
    """What was asked for in a pipeline; `after` tells whether there is the item that the page comes after."""

    rows: Result
    after: Result | None


async def send_page(
    pipeline: Pipeline, conversation_id: str, *, user_id: str, most: int, newest_first: bool, after: str | None = None
) -> SentPage:
    """Ask for the first `most` rows of what is shown, after an item if one is named, as far as they fit into a page.

    Beside the fields of `StoredItem` each row has `found`, how many there were before they had to fit, and `versions`
    for `branches.versions`.
    """
    where = {"conversation": conversation_id, "owner": user_id}
    named = {} if after is None else {"after": after}
    rows = await pipeline.send(_PAGES[newest_first, after is not None], **where, **named, most=most)
    return SentPage(rows, await pipeline.send(_IS_THERE, **where, **named) if named else None)


async def send_time_zone(pipeline: Pipeline, zone: str, acting: Acting) -> None:
    """Keep the zone as the person's, if the turn holds its lease."""
    await pipeline.send(_KEEP_TIME_ZONE, owner=acting.user_id, run=acting.run_id, zone=zone)
