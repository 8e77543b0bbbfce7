"""Pages of what a conversation shows: whole runs of its shown path, from one of its records or from an end of it."""

from dataclasses import dataclass
from typing import LiteralString

from backend.conversations.records import Entry, Record, Run, ToolCall
from backend.conversations.timeline import ALTERNATIVES, CALL_COLUMNS, ENTRY_COLUMNS, RUN_COLUMNS
from backend.errors import NotFound
from common.database import Database

_FIND = "SELECT id FROM conversations WHERE user_id = %(user)s AND id = %(conversation)s"
_SHOWN = "r.user_id = %(user)s AND r.conversation_id = %(conversation)s AND r.active AND r.parent_call_id IS NULL"
# The run of the record from which the page begins; of a message that was answered again, the one that is shown, and of
# a sub-agent's tool call, the one that the sub-agent works for.
_START = f"""
SELECT r.seq FROM runs r WHERE {_SHOWN} AND (
    EXISTS (SELECT FROM entries e WHERE e.user_id = r.user_id AND e.run_id = r.id AND e.id = %(record)s)
    OR EXISTS (SELECT FROM runs s JOIN tool_calls c ON c.user_id = s.user_id AND c.run_id = s.id
        WHERE s.user_id = r.user_id AND s.top_run_id = r.id AND c.id = %(record)s))"""
_OLDEST = f"""
SELECT r.id FROM runs r WHERE {_SHOWN} AND (%(record)s::text IS NULL OR r.seq >= ({_START}))
ORDER BY r.seq LIMIT %(runs)s"""
_NEWEST = f"""
SELECT r.id FROM runs r WHERE {_SHOWN} AND (%(record)s::text IS NULL OR r.seq <= ({_START}))
ORDER BY r.seq DESC LIMIT %(runs)s"""


@dataclass(frozen=True, slots=True)
class _Statements:
    runs: LiteralString
    entries: LiteralString
    calls: LiteralString
    alternatives: LiteralString


def _of_runs(page: LiteralString) -> _Statements:
    """Returns the statements that read what the runs hold that a subquery selects."""
    return _Statements(
        f"SELECT {RUN_COLUMNS} FROM runs r WHERE r.user_id = %(user)s AND r.id IN ({page}) ORDER BY r.seq",
        f"""SELECT {ENTRY_COLUMNS} FROM entries e
        WHERE e.user_id = %(user)s AND e.run_id IN ({page}) AND e.seq IS NOT NULL AND e.complete ORDER BY e.seq""",
        f"SELECT {CALL_COLUMNS} FROM tool_calls c WHERE c.user_id = %(user)s AND c.run_id IN ({page}) ORDER BY c.seq",
        f"""SELECT r.id AS run_id, array_agg(a.id ORDER BY a.seq) AS ids
        FROM runs r {ALTERNATIVES}
        WHERE r.user_id = %(user)s AND r.id IN ({page}) GROUP BY r.id HAVING count(*) > 1""",
    )


_FROM_OLDEST, _FROM_NEWEST = _of_runs(_OLDEST), _of_runs(_NEWEST)


@dataclass(frozen=True, slots=True)
class RunPage:
    """The runs of a page, the oldest first, with what they hold.

    `alternatives` are, of each run that has any, the ids of all runs that continue the same run as it, in order.
    """

    runs: list[Run]
    entries: list[Entry]
    calls: list[ToolCall]
    alternatives: dict[str, list[str]]

    @property
    def records(self) -> list[Record]:
        """The entries and calls of the page, in order."""
        records: list[Record] = [*self.entries, *self.calls]
        return sorted(records, key=lambda record: record.seq or 0)

    def first_message(self, run_id: str) -> Entry | None:
        """Returns the message that has started a run; None if it is not on the page."""
        messages = (entry for entry in self.entries if entry.run_id == run_id and entry.kind == "user_message")
        return next(messages, None)


async def load_page(
    database: Database,
    user_id: str,
    conversation_id: str,
    *,
    runs: int,
    newest_first: bool = False,
    from_record: str | None = None,
) -> RunPage:
    """Loads a page of shown runs: the oldest first, or the newest.

    With `from_record` it begins with that record's run. Raises `NotFound` if the conversation, or that record in it,
    does not exist. One round trip.
    """
    send = _FROM_NEWEST if newest_first else _FROM_OLDEST
    where = {"user": user_id, "conversation": conversation_id, "record": from_record, "runs": runs}
    async with database.transaction(user_id) as tx:
        found = await tx.execute(_FIND, **where)
        page = await tx.execute(send.runs, Run, **where)
        entries = await tx.execute(send.entries, Entry, **where)
        calls = await tx.execute(send.calls, ToolCall, **where)
        alternatives = await tx.execute(send.alternatives, **where)
    if await found.fetchone() is None:
        raise NotFound
    shown = await page.fetchall()
    if from_record is not None and not shown:
        raise NotFound
    others = {row["run_id"]: row["ids"] for row in await alternatives.fetchall()}
    return RunPage(shown, await entries.fetchall(), await calls.fetchall(), others)
