"""What a conversation's lines are made of, read a portion at a time: however long it is, little is in memory."""

from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any

from sqlalchemy import RowMapping, TextClause, text
from sqlalchemy.ext.asyncio import AsyncEngine
from sqlmodel.ext.asyncio.session import AsyncSession

from backend.conversation.statements import LEFT
from backend.transcript import calls
from backend.transcript.calls import Step
from backend.transcript.lines import Line
from backend.transcript.making import KINDS, Head, Row, Transcript
from backend.transcript.runs import Run
from service.database import transaction

_PORTION = 50  # rows
_IN_IT = "user_id = :owner AND conversation_id = :conversation"

Ask = Callable[..., Awaitable[Sequence[RowMapping]]]
"""Runs a statement of one person's."""


def _statement(words: str) -> TextClause:
    return text(words.replace("IN_IT", _IN_IT).replace("LEFT_ID", f"metadata->>'{LEFT}'"))


# A first message may have been received a moment before its conversation is stored.
_HEAD = _statement("""
    SELECT id, LEFT_ID AS left_id, leaf_run_id, least(created_at, (
        SELECT min(m.created_at) FROM messages m WHERE m.user_id = c.user_id AND m.conversation_id = c.id
    )) AS created_at
    FROM conversations c WHERE user_id = :owner AND id = :conversation
""")
_ALL = _statement("SELECT id FROM conversations WHERE user_id = :owner ORDER BY id")
_RUNS = _statement("""
    SELECT id, parent_run_id, edits_run_id, kept_seq, message_id, outcome, usage, ended_at FROM runs
    WHERE IN_IT ORDER BY started_at, id
""")
_ROWS = _statement("""
    SELECT seq, id, run_id, kind, item, usage, created_at FROM messages
    WHERE IN_IT AND seq > :after AND kind = ANY (:kinds) ORDER BY seq LIMIT :most
""")
_STEPS = _statement("""
    SELECT run_id, call_id, seq, agent, kind, content, CASE kind WHEN 'step' THEN details END AS usage,
        kind = 'output' AND details->>'ok' = 'false' AS failed, created_at FROM agent_steps
    WHERE IN_IT AND run_id = ANY (:runs) AND call_id = ANY (:calls) ORDER BY run_id, seq
""")
_CLEARED = _statement("""
    SELECT id, created_at FROM conversations WHERE user_id = :owner AND LEFT_ID = :conversation ORDER BY id
""")


def asking(engine: AsyncEngine, user_id: str) -> Ask:
    """In a transaction of each statement's own: none is held while somebody reads what was found."""

    async def ask(statement: TextClause, **given: Any) -> Sequence[RowMapping]:
        async with transaction(engine, user_id) as session:
            return await within(session, user_id)(statement, **given)

    return ask


def within(session: AsyncSession, user_id: str) -> Ask:
    async def ask(statement: TextClause, **given: Any) -> Sequence[RowMapping]:
        found = await (await session.connection()).execute(statement, {"owner": user_id, **given})
        return found.mappings().all()

    return ask


async def conversations(ask: Ask) -> list[str]:
    """The ids of all that the person has, the oldest first."""
    return [row["id"] for row in await ask(_ALL)]


async def lines(ask: Ask, conversation_id: str) -> AsyncIterator[Line]:
    """Those of a conversation; none where it is not there."""
    where = {"conversation": conversation_id}
    for head in await ask(_HEAD, **where):
        told = Transcript(Head(**head), [Run(**run) for run in await ask(_RUNS, **where)])
        yield told.begin()
        after = 0
        while portion := await ask(_ROWS, **where, after=after, kinds=[*KINDS], most=_PORTION):
            found = [Row(**row) for row in portion]
            steps = await _steps(ask, found, where)
            for row in found:
                for one in told.of(row, steps):
                    yield one
            after = found[-1].seq
        for one in told.end([(row["id"], row["created_at"]) for row in await ask(_CLEARED, **where)]):
            yield one


async def _steps(ask: Ask, found: Sequence[Row], where: dict[str, str]) -> dict[tuple[str | None, str], list[Step]]:
    """What agents did for the calls in these rows."""
    made = [
        (row.run_id, call.id) for row in found if row.kind == "tool_calls" for call in calls.of(row.item.get("content"))
    ]
    steps: defaultdict[tuple[str | None, str], list[Step]] = defaultdict(list)
    if made:
        runs, ids = {run for run, _ in made}, {call for _, call in made}
        for row in await ask(_STEPS, **where, runs=[*runs], calls=[*ids]):
            steps[row["run_id"], row["call_id"]].append(Step(**row))
    return steps
