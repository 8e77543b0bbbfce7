"""The tree of a conversation's runs: one that stands beside another, and which path through them is shown.

What is shown is what no row's `superseded_by` takes away. A child's rows are younger than its parent's, so `seq` is the
order on every path, and who reads the shown one reads no tree.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, bindparam, literal, select

from backend.conversation import statements
from backend.conversation.acting import Acting
from backend.conversation.errors import Busy, NotFound
from backend.conversation.items import Hidden
from backend.conversation.rows import StoredItem, Versions
from backend.conversation.runs import leases
from backend.conversation.statements import MESSAGES
from service.database import Pipeline, Statement
from service.database.pipeline import Result


def _statement(text: str) -> Statement:
    return Statement(text.replace("IN_IT", "user_id = %(owner)s AND conversation_id = %(conversation)s"))


# A message's note of its time stands right before it, but for what a job beside the turn may have written meanwhile.
_BESIDE = _statement("""
WITH RECURSIVE held AS (
    SELECT id FROM runs WHERE IN_IT AND id = %(run)s AND status = 'running'
), message AS (
    SELECT seq, run_id FROM messages
    WHERE IN_IT AND id = %(message)s AND kind = 'user_message'
        AND superseded_by IS NULL AND EXISTS (SELECT FROM held)
), note AS (
    SELECT row.seq FROM message, LATERAL (
        SELECT seq, run_id, kind, item FROM messages
        WHERE IN_IT AND seq < message.seq AND kind NOT IN ('change', 'summary') ORDER BY seq DESC LIMIT 1
    ) AS row
    WHERE row.kind = 'note' AND row.item->'content' ? 'now' AND row.run_id IS NOT DISTINCT FROM message.run_id
), cut AS (
    SELECT CASE WHEN %(again)s THEN seq + 1 ELSE coalesce((SELECT seq FROM note), seq) END AS seq FROM message
), beside AS (
    SELECT other.id, other.parent_run_id
    FROM message JOIN runs AS own ON own.user_id = %(owner)s AND own.id = message.run_id
    JOIN runs AS other ON other.user_id = own.user_id AND other.conversation_id = own.conversation_id
        AND other.parent_run_id IS NOT DISTINCT FROM own.parent_run_id
    WHERE other.chosen AND other.id <> %(run)s
), above AS (
    SELECT parent_run_id AS id FROM beside
    UNION ALL
    SELECT parent_run_id FROM above JOIN runs ON runs.user_id = %(owner)s AND runs.id = above.id
), unchosen AS (
    UPDATE runs SET chosen = false FROM beside WHERE runs.user_id = %(owner)s AND runs.id = beside.id
), placed AS (
    UPDATE runs SET parent_run_id = beside.parent_run_id, edits_run_id = beside.id, kept_seq = cut.seq - 1
    FROM beside, cut WHERE runs.user_id = %(owner)s AND runs.id = %(run)s
), replaced AS (
    UPDATE messages SET superseded_by = %(run)s FROM cut
    WHERE IN_IT AND messages.seq >= cut.seq AND superseded_by IS NULL AND kind <> 'change'
        AND (run_id IS NULL OR run_id NOT IN (SELECT id FROM above WHERE id IS NOT NULL))
)
SELECT EXISTS (SELECT FROM held) AS held, EXISTS (SELECT FROM message) AS found
""")


def _done(where: ColumnElement[bool]) -> Statement:
    """The latest notes and calls of a conversation that fit into a page's bytes."""
    rows = select(*(MESSAGES.c[name] for name in StoredItem._fields)).where(
        MESSAGES.c.user_id == bindparam("owner"),
        MESSAGES.c.conversation_id == bindparam("conversation"),
        MESSAGES.c.kind.in_([literal(kind) for kind in ("note", "tool_calls", "tool_output")]),
        where,
    )
    return Statement(statements.within_bytes(rows.order_by(MESSAGES.c.seq.desc()), newest_first=True))


_REPLACED = _done(MESSAGES.c.superseded_by == bindparam("run"))
_ASIDE, _SHOWN = _done(MESSAGES.c.superseded_by.is_not(None)), _done(MESSAGES.c.superseded_by.is_(None))
_LEAF = Statement("SELECT leaf_run_id FROM conversations WHERE user_id = %(owner)s AND id = %(conversation)s")
_LEASED = _statement("SELECT status FROM runs WHERE IN_IT AND status IN ('running', 'waiting')")
# The run, or where its path went on when it was shown last.
_END_OF = _statement("""
WITH RECURSIVE down AS (
    SELECT id, 0 AS depth FROM runs WHERE IN_IT AND id = %(run)s
    UNION ALL
    SELECT runs.id, depth + 1 FROM down JOIN runs ON runs.parent_run_id = down.id AND runs.chosen AND %(to_its_end)s
    WHERE IN_IT
)
SELECT id FROM down ORDER BY depth DESC LIMIT 1
""")
# In `kept`, which rows stand on the runs of a side: those of a run, and those that it keeps of the run beside it. All
# are found after `begin`: a run's rows begin with its message, but for the note of its time.
_MOVE = _statement("""
WITH RECURSIVE before AS (
    SELECT id, parent_run_id FROM runs WHERE IN_IT AND id = %(from)s
    UNION ALL
    SELECT runs.id, runs.parent_run_id
    FROM before JOIN runs ON runs.user_id = %(owner)s AND runs.id = before.parent_run_id
), after AS (
    SELECT id, parent_run_id FROM runs WHERE IN_IT AND id = %(to)s
    UNION ALL
    SELECT runs.id, runs.parent_run_id
    FROM after JOIN runs ON runs.user_id = %(owner)s AND runs.id = after.parent_run_id
), sides AS (
    SELECT id, parent_run_id, true AS comes FROM after WHERE id NOT IN (SELECT id FROM before)
    UNION ALL
    SELECT id, parent_run_id, false FROM before WHERE id NOT IN (SELECT id FROM after)
), kept AS (
    SELECT comes, id, 9223372036854775807 AS last FROM sides
    UNION ALL
    SELECT comes, runs.edits_run_id, least(last, runs.kept_seq)
    FROM kept JOIN runs ON runs.user_id = %(owner)s AND runs.id = kept.id WHERE runs.edits_run_id IS NOT NULL
), first AS (
    SELECT CASE WHEN bool_and(message_id IS NOT NULL) THEN (
        SELECT min(seq) FROM messages WHERE IN_IT AND id IN (
            SELECT message_id FROM runs WHERE user_id = %(owner)s AND id IN (SELECT id FROM sides)
        )
    ) END AS seq FROM runs WHERE user_id = %(owner)s AND id IN (SELECT id FROM sides)
), begin AS (
    SELECT coalesce((
        SELECT messages.seq FROM first, messages WHERE IN_IT AND messages.seq < first.seq
        ORDER BY messages.seq DESC OFFSET 100 LIMIT 1
    ), 0) AS seq
), hidden AS (
    UPDATE messages SET superseded_by = 'aside'
    FROM kept AS old LEFT JOIN kept AS new ON new.comes AND new.id = old.id
    WHERE IN_IT AND seq > (SELECT seq FROM begin) AND superseded_by IS NULL AND kind <> 'change'
        AND NOT old.comes AND old.id = run_id AND seq <= old.last AND seq > coalesce(new.last, 0)
), removed AS (
    UPDATE messages SET superseded_by = 'removed'
    WHERE IN_IT AND superseded_by IS NULL AND run_id IS NULL AND kind <> 'change'
        AND seq > (SELECT coalesce(seq, 0) FROM first)
), revealed AS (
    UPDATE messages SET superseded_by = NULL FROM kept
    WHERE IN_IT AND seq > (SELECT seq FROM begin) AND comes AND kept.id = run_id AND seq <= last AND (
        superseded_by = 'aside'
        OR superseded_by IN (SELECT id FROM runs WHERE IN_IT AND edits_run_id IS NOT NULL)
            AND superseded_by NOT IN (SELECT id FROM after)
    )
), chosen AS (
    UPDATE runs SET chosen = NOT chosen
    WHERE IN_IT AND chosen <> (id IN (SELECT id FROM sides WHERE comes)) AND (
        coalesce(parent_run_id, '') IN (SELECT coalesce(parent_run_id, '') FROM sides WHERE comes)
        OR parent_run_id IS NOT DISTINCT FROM %(to)s
    )
)
UPDATE conversations SET leaf_run_id = %(to)s WHERE user_id = %(owner)s AND id = %(conversation)s
""")


@dataclass(frozen=True)
class Moved:
    """What the model is to know of, where another path is shown: what was done there, and what is known here."""

    elsewhere: Sequence[StoredItem]
    here: Sequence[StoredItem]


async def send_beside(
    pipeline: Pipeline, run_id: str, message_id: str, *, again: bool, user_id: str, conversation_id: str
) -> Sequence[StoredItem] | None:
    """Let a run that holds its lease stand beside the one that has answered a message of the shown path.

    What followed the message is replaced by the run, and so is the message, unless it is answered `again`; what the
    person changed by hand meanwhile still holds. Returns the notes and calls that were replaced, the latest that fit
    into a page's bytes: a round trip. Nothing is done, and None returned, for a run without its lease; raises
    `NotFound` when there is no such message.
    """
    where = {"owner": user_id, "conversation": conversation_id, "run": run_id}
    placed = await pipeline.send(_BESIDE, **where, message=message_id, again=again)
    replaced = await pipeline.send(_REPLACED, **where)
    row = await placed.fetchone()
    assert row is not None
    if not row["held"]:
        return None
    if not row["found"]:
        raise NotFound
    return await _rows(replaced)


async def find(
    pipeline: Pipeline, run_id: str | None, *, user_id: str, conversation_id: str, to_its_end: bool
) -> tuple[str | None, str | None]:
    """The run that the shown path ends with, and the one that it would end with if this were shown: a round trip.

    `to_its_end` is to show what followed the run, too, when it was shown last. Raises `NotFound`, and `Busy` while a
    run is running.
    """
    where = {"owner": user_id, "conversation": conversation_id}
    shown = await pipeline.send(_LEAF, **where)
    end = await pipeline.send(_END_OF, **where, run=run_id, to_its_end=to_its_end)
    leased = await pipeline.send(_LEASED, **where)
    leaf, found, holder = await shown.fetchone(), await end.fetchone(), await leased.fetchone()
    if leaf is None or (run_id is not None and found is None):
        raise NotFound
    if holder is not None and holder["status"] == "running":
        raise Busy
    return leaf["leaf_run_id"], found["id"] if found else None


async def show(
    pipeline: Pipeline,
    run_id: str | None,
    *,
    user_id: str,
    conversation_id: str,
    note: Callable[[Moved], Hidden | None],
) -> None:
    """Let the shown path end with a run, or before the first one.

    What the person changed by hand stays; the `note` tells the model what was done on the paths that are not shown.
    Raises `Busy` while a run is running or waits, and `NotFound` when the conversation is gone.
    """
    where = {"owner": user_id, "conversation": conversation_id}
    held = await leases.lock_conversation(pipeline, user_id=user_id, conversation_id=conversation_id)
    locked = await held.fetchone()
    if locked is None:
        raise NotFound
    if await (await pipeline.send(_LEASED, **where)).fetchone() is not None:
        raise Busy
    await pipeline.send(_MOVE, **where, **{"from": locked["leaf_run_id"], "to": run_id})
    aside, shown = await pipeline.send(_ASIDE, **where), await pipeline.send(_SHOWN, **where)
    told = note(Moved(await _rows(aside), await _rows(shown)))
    if told is not None:
        await statements.send_items(pipeline, conversation_id, [told], Acting(user_id))


def versions(found: dict[str, Any] | None, message_id: str) -> Versions | None:
    """Where the shown run stands among those beside it, by what `statements.send_page` has found of a message.

    None for the only one, and for other messages of a run.
    """
    if found is None or found["message"] != message_id:
        return None
    runs: list[str] = found["runs"]
    number = runs.index(found["shown"])
    before, after = runs[:number], runs[number + 1 :]
    return Versions(
        number=number + 1,
        count=len(runs),
        previous=before[-1] if before else None,
        next=after[0] if after else None,
    )


async def _rows(page: Result) -> list[StoredItem]:
    """In their order."""
    return sorted(StoredItem(*(row[name] for name in StoredItem._fields)) for row in await page.fetchall())
