"""Runs as their person reads them later: those of the path that is shown, what each has stored, and what it knew."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy.ext.asyncio import AsyncEngine

from backend.conversation import chats, reading
from backend.conversation.chats import Chat
from backend.conversation.items import Summarised
from backend.conversation.reading import MOST, Recent
from backend.conversation.rows import ONLY_SHOWN, StoredItem
from backend.conversation.runs import approvals
from backend.conversation.runs.approvals import Approval
from backend.conversation.runs.leases import Outcome
from backend.errors import NotFound
from service.database import Statement, pipelined

# The path to a run: it, and those before it, each of which goes on from the end of the one before. `kept` has with them
# the runs that they stand beside, up to the last row that they have in common.
_PATH = """
    WITH RECURSIVE path AS (
        SELECT id, parent_run_id, message_id, 0 AS up FROM runs
        WHERE user_id = %(owner)s AND conversation_id = %(conversation)s AND id = %(leaf)s
        UNION ALL
        SELECT runs.id, runs.parent_run_id, runs.message_id, path.up + 1 FROM path JOIN runs
        ON runs.user_id = %(owner)s AND runs.conversation_id = %(conversation)s AND runs.id = path.parent_run_id
    ), kept AS (
        SELECT id, 9223372036854775807 AS last FROM path
        UNION ALL
        SELECT runs.edits_run_id, least(last, runs.kept_seq) FROM kept JOIN runs
        ON runs.user_id = %(owner)s AND runs.id = kept.id WHERE runs.kept_seq IS NOT NULL
    )
"""
_RUNS = """
    SELECT runs.id, runs.status, runs.outcome, runs.usage, runs.started_at, runs.ended_at, runs.message_id, ARRAY(
        SELECT beside.id FROM runs AS beside
        WHERE beside.user_id = runs.user_id AND beside.conversation_id = runs.conversation_id
        AND beside.parent_run_id IS NOT DISTINCT FROM runs.parent_run_id ORDER BY beside.started_at, beside.id
    ) AS siblings
"""
# What was not replaced on the path itself; of what no run wrote, as clicks, what still counts.
_COUNTS = """
    ((run_id IS NULL AND superseded_by IS NULL) OR (
        EXISTS (SELECT FROM kept WHERE kept.id = run_id AND seq <= kept.last)
        AND coalesce(superseded_by, '') NOT IN (SELECT 'removed' UNION SELECT id FROM path)
    ))
"""
_IN_CHAT = " FROM messages WHERE user_id = %(owner)s AND conversation_id = %(conversation)s AND "


def _statement(*parts: str) -> Statement:
    return Statement("".join(parts))


_PAGE = _statement(
    _PATH,
    _RUNS,
    """
    FROM path JOIN runs ON runs.user_id = %(owner)s AND runs.id = path.id
    WHERE %(before)s::text IS NULL OR path.up > (SELECT up FROM path WHERE id = %(before)s)
    ORDER BY path.up LIMIT %(most)s
    """,
)
_ON_PATH = _statement(_PATH, "SELECT id FROM path WHERE id = %(before)s")
_ONE = _statement(
    _RUNS, "FROM runs WHERE runs.user_id = %(owner)s AND runs.conversation_id = %(conversation)s AND runs.id = %(run)s"
)
_ROWS = _statement(
    "SELECT run_id, seq, id, kind, item, feedback",
    _IN_CHAT,
    "kind <> ALL (%(left_out)s) AND (run_id = ANY (%(runs)s) OR id = ANY (%(messages)s)) ORDER BY seq",
)
_KNOWN = _statement(
    _PATH,
    "SELECT seq, id, kind, item, feedback",
    _IN_CHAT,
    "kind <> ALL (%(left_out)s) AND seq <= %(last)s AND ",
    _COUNTS,
    "ORDER BY seq DESC LIMIT %(most)s",
)
_SUMMARIES = _statement(
    _PATH,
    "SELECT seq, (item->'content'->>'covers')::bigint AS covers, item",
    _IN_CHAT,
    "kind = 'summary' AND item->'content'->>'covers' IS NOT NULL AND ",
    _COUNTS,
    "ORDER BY covers, seq",
)
_ASKED = _statement(
    "SELECT id, conversation_id, run_id, step_id, position, call, key, text, item_id, created_at, decision, reason, ",
    "decided_at, agent, of_call FROM approvals WHERE user_id = %(owner)s AND conversation_id = %(conversation)s ",
    "AND run_id = ANY (%(runs)s) ORDER BY created_at, step_id, position, id",
)
_NOT_TOLD = ("widget", "generated_image", "summary")
_END = 2**63 - 1


class Head(NamedTuple):
    """A run. `siblings` are the runs that go on from where it does, itself among them, the oldest first."""

    id: str
    status: str
    outcome: Outcome | None
    usage: dict[str, Any] | None
    started_at: datetime
    ended_at: datetime | None
    message_id: str | None
    siblings: list[str]


@dataclass(frozen=True)
class Interaction:
    """A run, the message that it answers, the rows that it has stored, and what the model is sent after it.

    `asked` is what it asked its person for, in that order, and `news` the line of the summary that it was the first to
    read.
    """

    head: Head
    message: StoredItem | None
    rows: list[StoredItem]
    asked: list[Approval]
    knew: Recent
    news: Summarised | None


async def page(
    engine: AsyncEngine, chat: Chat, *, user_id: str, limit: int, before: str | None = None
) -> tuple[list[Head], bool]:
    """The newest `limit` runs of the shown path before a run, the oldest first, and whether there are older ones.

    Raises `NotFound` where `before` is not on the path.
    """
    path = {"owner": user_id, "conversation": chat.id, "leaf": chat.leaf_run_id, "before": before}
    async with pipelined(engine, user_id) as pipeline:
        found = await pipeline.send(_PAGE, **path, most=limit + 1)
        there = await pipeline.send(_ON_PATH, **path)
    if before is not None and await there.fetchone() is None:
        raise NotFound
    runs = [Head(**run) for run in await found.fetchall()]
    return runs[:limit][::-1], len(runs) > limit


async def find(engine: AsyncEngine, chat: Chat, run_id: str, *, user_id: str) -> Head:
    """The run of this id, on whichever path of the chat; raises `NotFound`."""
    if not chats.can_be(run_id):
        raise NotFound
    async with pipelined(engine, user_id) as pipeline:
        found = await pipeline.send(_ONE, owner=user_id, conversation=chat.id, run=run_id)
    if (run := await found.fetchone()) is None:
        raise NotFound
    return Head(**run)


async def load(
    engine: AsyncEngine, chat: Chat, runs: Sequence[Head], *, leaf: str | None, user_id: str
) -> list[Interaction]:
    """What is stored of these runs, which are in their order on the path to `leaf`; without one not what they knew."""
    where = {"owner": user_id, "conversation": chat.id}
    answered = [run.message_id for run in runs if run.message_id]
    ids = [run.id for run in runs]
    async with pipelined(engine, user_id) as pipeline:
        found = await pipeline.send(_ROWS, **where, runs=ids, messages=answered, left_out=list(_NOT_TOLD))
        asking = await pipeline.send(_ASKED, **where, runs=ids)
    own: dict[str, list[StoredItem]] = {run_id: [] for run_id in ids}
    messages: dict[str, StoredItem] = {}
    for row in await found.fetchall():
        run_id = row.pop("run_id")
        messages[row["id"]] = StoredItem(**row)
        if run_id in own:
            own[run_id].append(messages[row["id"]])
    # What was done by hand since is known after the last one only.
    last = [_END if run.id == chat.leaf_run_id else max((row.seq for row in own[run.id]), default=0) for run in runs]
    said = [messages[run.message_id].seq if run.message_id in messages else 0 for run in runs]
    knew = [_NOTHING] * len(runs)
    if leaf is not None:
        places = [*zip(said, last, strict=True)]
        knew = await _known(engine, {**where, "leaf": leaf}, places, most=MOST + 1 + len(messages))
    asked = await approvals.read(asking)
    return [
        Interaction(
            run,
            messages.get(run.message_id or ""),
            own[run.id],
            [one for one in asked if one.run_id == run.id],
            recent,
            news,
        )
        for run, (recent, news) in zip(runs, knew, strict=True)
    ]


_NOTHING: tuple[Recent, Summarised | None] = (Recent([], True, None), None)


async def _known(
    engine: AsyncEngine, path: dict[str, str], places: Sequence[tuple[int, int]], *, most: int
) -> list[tuple[Recent, Summarised | None]]:
    """Of runs that began with a message and ended at a seq, which rise: what counted then, and what was new before."""
    async with pipelined(engine, path["owner"]) as pipeline:
        summarised = await pipeline.send(_SUMMARIES, **path)
        newest = await pipeline.send(_KNOWN, **path, last=places[-1][1], most=most, left_out=list(ONLY_SHOWN))
    rows = [StoredItem(**row) for row in await newest.fetchall()][::-1]
    summaries = await summarised.fetchall()
    seqs, said = [row.seq for row in rows], [row.seq for row in rows if row.kind == "user_message"]
    known: list[tuple[Recent, Summarised | None]] = []
    for begin, end in places:
        before = next((one for one in reversed(summaries) if one["seq"] < begin), None)
        summary = next((one for one in reversed(summaries) if one["seq"] <= end), None)
        first = bisect_right(seqs, summary["covers"]) if summary else 0
        counted = rows[first : bisect_right(seqs, end)]
        text = summary["item"]["content"].get("text") if summary else None
        news = reading.news(before, [seq for seq in said if seq < begin])
        known.append((Recent(counted[-MOST:], len(counted) <= MOST, text), news))
    return known
