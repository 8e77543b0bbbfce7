"""What the model is to read of a conversation: the rows that still count, and the summary of those before them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, Select, bindparam, cast, func, literal, literal_column, select, union_all

from backend.conversation.items import Summarised
from backend.conversation.models import Message
from backend.conversation.rows import ONLY_SHOWN, StoredItem
from backend.conversation.runs import leases
from service.database import Pipeline, Statement
from service.database.pipeline import Result

MESSAGES = Message.metadata.tables["messages"]
# In words: a prepared statement's parameter would not match the partial index.
SUMMARISED = literal_column("'summary'")
COVERED = cast(MESSAGES.c.item["content"]["covers"].as_string(), BigInteger)
_IN_CONVERSATION = (
    MESSAGES.c.conversation_id == bindparam("conversation"),
    MESSAGES.c.user_id == bindparam("owner"),
    MESSAGES.c.superseded_by.is_(None),
)
_FIELDS = [MESSAGES.c[name] for name in StoredItem._fields]
_SUMMARIES = select(*_FIELDS).where(*_IN_CONVERSATION, MESSAGES.c.kind == SUMMARISED, COVERED.is_not(None))
_LAST_SUMMARY = _SUMMARIES.order_by(COVERED.desc(), MESSAGES.c.seq.desc()).limit(literal(1))
# COALESCE inside: around a sub-select, row-level security would keep the comparison from being one of the index.
_COVERED_TO = select(func.coalesce(func.max(COVERED), literal(0))).where(
    *_IN_CONVERSATION, MESSAGES.c.kind == SUMMARISED
)
_READ = select(*_FIELDS).where(
    *_IN_CONVERSATION,
    MESSAGES.c.kind.not_in([literal(kind) for kind in ONLY_SHOWN]),
    MESSAGES.c.seq > _COVERED_TO.scalar_subquery(),
)
_NEWEST_ROWS = _READ.order_by(MESSAGES.c.seq.desc()).limit(bindparam("most"))


def _and_summary(rows: Select[Any]) -> Statement:
    """The rows and the last summary, in any order: one statement is sent in less time than two."""
    return Statement(union_all(select(rows.subquery()), select(_LAST_SUMMARY.subquery())))


_NEWEST = _and_summary(_NEWEST_ROWS)
# For the turn that holds the lease: one that is refused, because another answers, reads nothing.
_NEWEST_AS_TURN = _and_summary(_NEWEST_ROWS.where(leases.HOLDS))
_OLDEST = _and_summary(
    _READ.where(MESSAGES.c.seq <= bindparam("last")).order_by(MESSAGES.c.seq).limit(bindparam("most"))
)
_STEP = ("user_message", "assistant_message", "tool_calls", "tool_output")
_STEPS = Statement(
    select(*_FIELDS)
    .where(*_IN_CONVERSATION, MESSAGES.c.run_id == bindparam("run"))
    .where(MESSAGES.c.kind.in_([literal(kind) for kind in _STEP]))
    .order_by(MESSAGES.c.seq)
)

MOST = 600  # rows


@dataclass(frozen=True)
class Recent:
    """The newest rows of a conversation, in order; `complete` when nothing but `summary` comes before them.

    `news` is the line of a summary that was made after the person's last message but one.
    """

    rows: list[StoredItem]
    complete: bool
    summary: str | None
    news: Summarised | None = None


@dataclass(frozen=True)
class LeftOut:
    """The oldest rows that no summary covers, in order, and the summary of what comes before them."""

    rows: list[StoredItem]
    summary: str | None


@dataclass(frozen=True)
class Sent:
    """What was asked for in a pipeline, to be read after it."""

    result: Result
    most: int

    async def recent(self) -> Recent:
        rows, summary = await self._read()
        read = rows[-self.most :]
        said = [row.seq for row in read if row.kind == "user_message"]
        return Recent(read, len(rows) <= self.most, _text(summary), news(summary, said[:-1]))

    async def left_out(self) -> LeftOut:
        rows, summary = await self._read()
        return LeftOut(rows, _text(summary))

    async def _read(self) -> tuple[list[StoredItem], Mapping[str, Any] | None]:
        """The rows, in order, and the summary of those before them."""
        found = await self.result.fetchall()
        summary = next((row for row in found if row["kind"] == "summary"), None)
        return sorted(StoredItem(**row) for row in found if row is not summary), summary


async def send_recent(
    pipeline: Pipeline, conversation_id: str, *, user_id: str, run: str | None = None, most: int = MOST
) -> Sent:
    """Ask for everything after the last summary, hidden rows too, the newest `most` rows at most.

    With a run, there are rows only while it holds its lease.
    """
    newest = _NEWEST if run is None else _NEWEST_AS_TURN
    held = {} if run is None else {"run": run}
    where = {"conversation": conversation_id, "owner": user_id}
    return Sent(await pipeline.send(newest, **where, **held, most=most + 1), most)


async def send_left_out(
    pipeline: Pipeline, conversation_id: str, *, user_id: str, up_to: int, most: int = MOST
) -> Sent:
    """Ask for what a next summary is made of: the oldest `most` rows after the last one, up to the seq `up_to`."""
    where = {"conversation": conversation_id, "owner": user_id}
    return Sent(await pipeline.send(_OLDEST, **where, last=up_to, most=most), most)


async def send_steps(pipeline: Pipeline, conversation_id: str, run_id: str, *, user_id: str) -> Result:
    """Ask for the calls of a run and their outputs, and what was said between them: rows for `rows_of`."""
    return await pipeline.send(_STEPS, conversation=conversation_id, run=run_id, owner=user_id)


async def rows_of(result: Result) -> list[StoredItem]:
    return [StoredItem(**row) for row in await result.fetchall()]


def _text(summary: Mapping[str, Any] | None) -> str | None:
    return summary["item"]["content"].get("text") if summary else None


def news(summary: Mapping[str, Any] | None, said: Sequence[int]) -> Summarised | None:
    """The line of a summary (`seq`, `item`) that was made after all that its person had `said`, by the seqs of that."""
    if summary is None or any(seq > summary["seq"] for seq in said):
        return None
    match summary["item"]:
        case {"created_at": made, "content": {"line": str(line), "messages": int(messages)}}:
            return Summarised(id=line, messages=messages, created_at=datetime.fromisoformat(made))
        case _:
            return None  # of a version that drew no line
