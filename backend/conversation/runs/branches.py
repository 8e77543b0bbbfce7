"""The tree of a conversation's runs: one that stands beside another, and which path through them is shown.

What is shown is what no row's `superseded_by` takes away. A child's rows are younger than its parent's, so `seq` is the
order on every path, and who reads the shown one reads no tree.
"""

from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from psycopg.types.json import Jsonb
from sqlalchemy import BigInteger, and_, bindparam

from backend.conversation import statements
from backend.conversation.acting import Acting
from backend.conversation.items import Hidden
from backend.conversation.rows import StoredItem, Versions
from backend.conversation.runs import leases
from backend.conversation.statements import MESSAGES, done, done_rows, within
from backend.errors import Busy, NotFound
from service.database import Pipeline, Statement

_NEAR = 64  # runs up from where a path ends
_CHANGED = MESSAGES.c.seq > bindparam("begin", type_=BigInteger)
_ASIDE = done(and_(_CHANGED, MESSAGES.c.superseded_by.is_not(None)))
_SHOWN = done(and_(_CHANGED, MESSAGES.c.superseded_by.is_(None)))
_LEAF = Statement("SELECT leaf_run_id FROM conversations WHERE user_id = %(owner)s AND id = %(conversation)s")
_LEASED = within("SELECT status FROM runs WHERE IN_IT AND status IN ('running', 'waiting')")
# The run, or where its path went on when it was shown last.
_END_OF = within("""
WITH RECURSIVE down AS (
    SELECT id, 0 AS depth FROM runs WHERE IN_IT AND id = %(run)s
    UNION ALL
    SELECT runs.id, depth + 1 FROM down JOIN runs ON runs.parent_run_id = down.id AND runs.chosen AND %(to_its_end)s
    WHERE IN_IT
)
SELECT id FROM down ORDER BY depth DESC LIMIT 1
""")
# A run and those above it, the nearest first, but no more than `most`.
_UP = within("""
WITH RECURSIVE path AS (
    SELECT id, parent_run_id, 1 AS up FROM runs WHERE IN_IT AND id = %(run)s
    UNION ALL
    SELECT runs.id, runs.parent_run_id, up + 1
    FROM path JOIN runs ON runs.user_id = %(owner)s AND runs.id = path.parent_run_id WHERE up < %(most)s
)
SELECT id, parent_run_id FROM path ORDER BY up
""")
# Which rows stand on these runs: those of a run, and those that it keeps of the run beside it, up to their `last`.
_KEPT = within("""
WITH RECURSIVE kept AS (
    SELECT id, 9223372036854775807 AS last FROM unnest(%(runs)s::text[]) AS id
    UNION ALL
    SELECT runs.edits_run_id, least(last, runs.kept_seq)
    FROM kept JOIN runs ON runs.user_id = %(owner)s AND runs.id = kept.id WHERE runs.edits_run_id IS NOT NULL
)
SELECT id, last FROM kept
""")
# The message with which the first of these runs began, if that is known of each, and `begin`, before all of their rows:
# they begin with the message, but for the note of its time.
_FIRST = within("""
WITH first AS (
    SELECT CASE WHEN bool_and(message_id IS NOT NULL) THEN (
        SELECT min(seq) FROM messages WHERE IN_IT AND id IN (
            SELECT message_id FROM runs WHERE user_id = %(owner)s AND id = ANY (%(runs)s::text[])
        )
    ) END AS seq FROM runs WHERE user_id = %(owner)s AND id = ANY (%(runs)s::text[])
)
SELECT coalesce(seq, 0) AS first, coalesce((
    SELECT messages.seq FROM messages WHERE IN_IT AND messages.seq < first.seq
    ORDER BY messages.seq DESC OFFSET 100 LIMIT 1
), 0) AS begin
FROM first
""")
# `coming` and `leaving` are objects of what `_KEPT` finds: a join of so many could be planned for few.
_MOVE = within("""
WITH hidden AS (
    UPDATE messages SET superseded_by = 'aside'
    WHERE IN_IT AND seq > %(begin)s AND superseded_by IS NULL AND kind <> 'change'
        AND seq <= (%(leaving)s ->> run_id)::bigint AND seq > coalesce((%(coming)s ->> run_id)::bigint, 0)
), removed AS (
    UPDATE messages SET superseded_by = 'removed'
    WHERE IN_IT AND seq > %(first)s AND superseded_by IS NULL AND kind <> 'change' AND run_id IS NULL
), revealed AS (
    UPDATE messages SET superseded_by = NULL
    WHERE IN_IT AND seq > %(begin)s AND seq <= (%(coming)s ->> run_id)::bigint AND (
        superseded_by = 'aside'
        OR superseded_by <> ALL (%(runs)s::text[]) AND EXISTS (
            SELECT FROM runs
            WHERE user_id = %(owner)s AND runs.id = messages.superseded_by AND edits_run_id IS NOT NULL
        )
    )
), chosen AS (
    UPDATE runs SET chosen = NOT chosen
    WHERE IN_IT AND chosen <> (id = ANY (%(runs)s::text[]))
        AND (parent_run_id = ANY (%(parents)s::text[]) OR (%(at_root)s AND parent_run_id IS NULL))
)
UPDATE conversations SET leaf_run_id = %(to)s WHERE user_id = %(owner)s AND id = %(conversation)s
""")


@dataclass(frozen=True)
class Moved:
    """What the model is to know of, where another path is shown: what was done there, and what is known here."""

    elsewhere: Sequence[StoredItem]
    here: Sequence[StoredItem]


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
    begin = await _move(pipeline, locked["leaf_run_id"], run_id, where)
    changed = {**where, "begin": begin}
    aside, shown = await pipeline.send(_ASIDE, **changed), await pipeline.send(_SHOWN, **changed)
    told = note(Moved(await done_rows(aside), await done_rows(shown)))
    if told is not None:
        await statements.send_items(pipeline, conversation_id, [told], Acting(user_id))


async def _move(pipeline: Pipeline, leaf: str | None, run_id: str | None, where: dict[str, str]) -> int:
    """Change what is shown where the two paths part, and nothing above; returns a `seq` before all that was changed."""
    leaving, coming = await _apart(pipeline, leaf, run_id, where)
    parents = {run_id, *coming.values()}
    kept = [await pipeline.send(_KEPT, owner=where["owner"], runs=[*runs]) for runs in (leaving, coming)]
    sent = await pipeline.send(_FIRST, **where, runs=[*leaving, *coming])
    left, come = [Jsonb({row["id"]: row["last"] for row in await one.fetchall()}) for one in kept]
    bounds = await sent.fetchone()
    assert bounds is not None
    await pipeline.send(
        _MOVE,
        **where,
        **bounds,
        to=run_id,
        leaving=left,
        coming=come,
        runs=[*coming],
        parents=[parent for parent in parents if parent is not None],
        at_root=None in parents,
    )
    return bounds["begin"]


Parents = dict[str, str | None]
"""Runs, and of each the one that it goes on from."""


async def _apart(
    pipeline: Pipeline, leaf: str | None, run_id: str | None, where: dict[str, str]
) -> tuple[Parents, Parents]:
    """The runs that are on the path to the first one only, and on the path to the second one only.

    They are looked for no further up than where the paths meet, or a little.
    """
    most = 1
    while True:
        most *= _NEAR
        sent = [await pipeline.send(_UP, **where, run=run, most=most) for run in (leaf, run_id)]
        before, after = [{row["id"]: row["parent_run_id"] for row in await one.fetchall()} for one in sent]
        shared = before.keys() & after.keys()
        if shared or max(len(before), len(after)) < most:
            return _up_to(shared, before), _up_to(shared, after)


def _up_to(shared: Set[str], path: Parents) -> Parents:
    return dict(takewhile(lambda run: run[0] not in shared, path.items()))


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
