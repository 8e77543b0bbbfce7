"""Conversations in SQL: finding, listing, renaming and deleting them, and what users add apart from messages."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from psycopg import AsyncCursor
from psycopg.types.json import Jsonb

from backend.conversations.errors import OwnerOnly
from backend.conversations.records import ConversationHead
from backend.conversations.runs import CHANGED, SIGNAL
from backend.conversations.timeline import FIND_CONVERSATION
from backend.errors import InvalidRequest, NotFound
from backend.ids import new_id
from backend.users.limits import UserLimits, send_request
from common.database import Database, Transaction
from common.text import is_single_line_text, remove_invisible

Feedback = Literal["positive", "negative"]
NAME_PATTERN = r"[A-Za-z0-9._-]{1,100}"
OPENAPI = "openapi.json"
"""Names no chat: the schema of the run API has this path."""
_NAME = re.compile(NAME_PATTERN)
_GENERATED = re.compile(r"thr_.*|[a-z]+_[0-9a-f]{32}")
_TITLE_CHARS = 60
_MAX_TITLE_CHARS = 200

_COLUMNS = """c.id, c.name, c.title, c.details, c.created_at,
    (SELECT r.id FROM runs r WHERE r.user_id = c.user_id AND r.conversation_id = c.id AND r.active
        AND r.parent_call_id IS NULL ORDER BY r.seq DESC LIMIT 1) AS head_run_id,
    (SELECT r.id FROM runs r WHERE r.user_id = c.user_id AND r.conversation_id = c.id AND r.status = 'running'
        AND r.parent_call_id IS NULL LIMIT 1) AS answering"""
_FIND = f"""
SELECT {_COLUMNS} FROM conversations c WHERE c.user_id = %(user)s AND c.id = %(id)s
UNION ALL
SELECT {_COLUMNS} FROM conversations c WHERE c.user_id = %(user)s AND c.name = %(id)s
LIMIT 1"""
_FIND_DIRECTORY = """
SELECT details->>'directory' AS directory FROM conversations
WHERE user_id = %(user)s AND (id = %(id)s OR name = %(id)s) AND details ? 'directory'"""
_ADD = """
INSERT INTO conversations (user_id, id, name, title, details)
VALUES (%(user)s, %(id)s, %(name)s, %(title)s, %(details)s)
RETURNING title, created_at"""
_TITLED = r"replace(replace(replace(%(titled)s, '\', '\\'), '%%', '\%%'), '_', '\_')"
_WANTED = f"c.user_id = %(user)s AND (%(titled)s = '' OR c.title ILIKE '%%' || {_TITLED} || '%%')"
_NEWEST = f"""
SELECT {_COLUMNS} FROM conversations c
WHERE {_WANTED} AND (%(after)s::text IS NULL OR c.id < %(after)s)
ORDER BY c.id DESC LIMIT %(limit)s"""
_OLDEST = f"""
SELECT {_COLUMNS} FROM conversations c
WHERE {_WANTED} AND (%(after)s::text IS NULL OR c.id > %(after)s)
ORDER BY c.id LIMIT %(limit)s"""
_RENAME = "UPDATE conversations SET title = %(title)s WHERE user_id = %(user)s AND id = %(id)s RETURNING id"
# A title that was not changed since, of a conversation without a name.
_IS_TITLED = """
SELECT id FROM conversations WHERE user_id = %(user)s AND id = %(id)s AND name IS NULL AND title = %(before)s"""
_IMPROVE_TITLE = """
UPDATE conversations SET title = %(title)s
WHERE user_id = %(user)s AND id = %(id)s AND name IS NULL AND title = %(before)s"""
# Their processes look at them, and their followers too.
_END_RUNS = """
UPDATE runs SET status = 'cancelled', process_id = NULL, ended_at = now(), end_seq = nextval('event_seq')
WHERE user_id = %(user)s AND conversation_id = %(id)s AND status IN ('running', 'waiting')
RETURNING id, pg_notify(%(signal)s, id), pg_notify(%(wake)s, id)"""
_DELETE = "DELETE FROM conversations WHERE user_id = %(user)s AND id = %(id)s RETURNING id"
MAX_COMMAND_BYTES = 262_144
"""How many bytes the commands of one run have: readers of its log load them together."""

# As of every write of a run, its number is taken under the lock of the run: the one at the end of the shown path, or
# for a command, after a branch was left, the newest one. A command counts as at least 256 bytes.
_ADD_ENTRY = """
WITH head AS (
    SELECT id FROM runs
    WHERE user_id = %(user)s AND conversation_id = %(conversation)s AND parent_call_id IS NULL
      AND (active OR %(kind)s = 'command')
    ORDER BY active DESC, seq DESC LIMIT 1 FOR NO KEY UPDATE
)
INSERT INTO entries (user_id, run_id, id, conversation_id, kind, text, details)
SELECT %(user)s, head.id, %(id)s, %(conversation)s, %(kind)s, %(text)s, %(details)s FROM head
WHERE %(kind)s <> 'command' OR (
    SELECT coalesce(sum(256 + octet_length(e.text)), 0) FROM entries e
    WHERE e.user_id = %(user)s AND e.run_id = head.id AND e.kind = 'command'
) + 256 + octet_length(%(text)s) <= %(most)s
ON CONFLICT (user_id, run_id, id) DO NOTHING"""
# FOR SHARE: no other path is shown until the end of the transaction.
_LOCK_CONVERSATION = f"{FIND_CONVERSATION} FOR SHARE"
_SHOWN_RUNS = """(SELECT id FROM runs WHERE user_id = %(user)s AND conversation_id = %(conversation)s AND active)"""
_RATE_ENTRIES = f"""
UPDATE entries SET feedback = %(feedback)s
WHERE user_id = %(user)s AND run_id IN {_SHOWN_RUNS} AND id = ANY(%(records)s) AND seq IS NOT NULL RETURNING id"""
_RATE_CALLS = f"""
UPDATE tool_calls SET feedback = %(feedback)s
WHERE user_id = %(user)s AND run_id IN {_SHOWN_RUNS} AND id = ANY(%(records)s) RETURNING id"""


@dataclass(frozen=True, slots=True)
class Conversation:
    """`head_run_id` is the end of the shown path; `answering` is the id of the run that is being executed."""

    id: str
    name: str | None
    title: str | None
    details: dict[str, Any]
    created_at: datetime
    head_run_id: str | None
    answering: str | None

    @property
    def directory(self) -> str | None:
        return self.details.get("directory")


def is_generated(chat_id: str) -> bool:
    return _GENERATED.fullmatch(chat_id) is not None


def is_valid(name_or_id: str) -> bool:
    return _NAME.fullmatch(name_or_id) is not None


def check_chat_id(chat_id: str) -> None:
    if not is_valid(chat_id) or chat_id == OPENAPI or not chat_id.strip("."):
        raise InvalidRequest(
            "Name a chat by its id, or by 1 to 100 letters, digits, dots, dashes and underscores. "
            f"Dots alone and {OPENAPI} are not allowed."
        )


async def send_conversation(
    tx: Transaction,
    conversation_id: str,
    *,
    title: str | None,
    name: str | None = None,
    details: dict[str, Any] | None = None,
) -> AsyncCursor[ConversationHead]:
    values = {"name": name, "title": title, "details": Jsonb(details or {})}
    return await tx.execute(_ADD, ConversationHead, id=conversation_id, **values)


async def create(
    database: Database, user_id: str, *, title: str, details: dict[str, Any] | None = None, limits: UserLimits
) -> tuple[str, ConversationHead]:
    conversation_id = new_id("thr")
    async with database.transaction(user_id) as tx:
        added = await send_conversation(tx, conversation_id, title=first_words(title), details=details)
        await send_request(tx, limits, is_new=True)
    head = await added.fetchone()
    assert head is not None
    return conversation_id, head


async def find(database: Database, user_id: str, id_or_name: str) -> Conversation:
    """Loads a conversation by its id or the name that its user's program gave it. Raises `NotFound`."""
    if (conversation := await database.fetch_one(user_id, _FIND, Conversation, id=id_or_name)) is None:
        raise NotFound.of("conversation", id_or_name)
    return conversation


async def find_directory(database: Database, user_id: str, id_or_name: str) -> str | None:
    """Loads the directory of the user's in which a conversation works, which never changes; None if it has a folder."""
    row = await database.fetch_one(user_id, _FIND_DIRECTORY, id=id_or_name)
    return row["directory"] if row else None


async def check_owner(database: Database, user_id: str, id_or_name: str) -> None:
    """Raises `OwnerOnly` for a conversation that works in a directory; nothing for one that does not exist."""
    if is_valid(id_or_name) and await find_directory(database, user_id, id_or_name) is not None:
        raise OwnerOnly


async def load_page(
    database: Database,
    user_id: str,
    *,
    limit: int,
    after: str | None = None,
    oldest_first: bool = False,
    titled: str = "",
) -> tuple[list[Conversation], bool]:
    """Loads a page of the user's conversations, after one, and whether there are more.

    The newest come first, or with `oldest_first` the oldest. `titled` selects those whose title has these letters, in
    either case.
    """
    statement = _OLDEST if oldest_first else _NEWEST
    where = {"after": after, "titled": titled, "limit": limit + 1}
    found = await database.fetch_all(user_id, statement, Conversation, **where)
    return found[:limit], len(found) > limit


def parse_title(text: str) -> str:
    """Returns a title without invisible characters. Raises `InvalidRequest`."""
    if not is_single_line_text(title := text.strip(), max_length=_MAX_TITLE_CHARS):
        raise InvalidRequest(f"A title must be one line of 1 to {_MAX_TITLE_CHARS} visible characters.")
    return remove_invisible(title).strip()


async def rename(database: Database, user_id: str, conversation_id: str, title: str) -> None:
    if await database.fetch_one(user_id, _RENAME, id=conversation_id, title=title) is None:
        raise NotFound.of("conversation", conversation_id)


async def has_title(database: Database, user_id: str, conversation_id: str, title: str) -> bool:
    return await database.fetch_one(user_id, _IS_TITLED, id=conversation_id, before=title) is not None


async def improve_title(database: Database, user_id: str, conversation_id: str, *, before: str, title: str) -> None:
    await database.execute(user_id, _IMPROVE_TITLE, id=conversation_id, before=before, title=title)


def first_words(text: str) -> str:
    words = " ".join(remove_invisible(text).split())
    if len(words) <= _TITLE_CHARS:
        return words
    return words[:_TITLE_CHARS].rsplit(" ", 1)[0].rstrip(",.;:") + "…"


async def delete(database: Database, user_id: str, conversation_id: str) -> None:
    """Ends the conversation's runs and deletes all of it but their usage. Raises `NotFound`."""
    async with database.transaction(user_id) as tx:
        await tx.execute(_END_RUNS, id=conversation_id, signal=SIGNAL, wake=CHANGED)
        deleted = await tx.execute(_DELETE, id=conversation_id)
    if await deleted.fetchone() is None:
        raise NotFound.of("conversation", conversation_id)


async def add_change(
    database: Database,
    user_id: str,
    conversation_id: str,
    *,
    change_id: str,
    kind: str,
    tasks: Sequence[tuple[int, str]],
) -> None:
    """Stores what a user did to tasks, given by id and title, for the model; once under the same `change_id`."""
    details: dict[str, Any] = {"change": kind, "tasks": [{"id": number, "title": title} for number, title in tasks]}
    values = {"conversation": conversation_id, "id": change_id, "kind": "change", "text": ""}
    await database.execute(user_id, _ADD_ENTRY, details=Jsonb(details), most=MAX_COMMAND_BYTES, **values)


async def add_command(
    database: Database, user_id: str, conversation_id: str, text: str, result: dict[str, Any]
) -> None:
    """Stores a command that was executed, for the event log alone; nothing in a conversation without runs, or if the
    run would have more than `MAX_COMMAND_BYTES` of commands.
    """
    values = {"conversation": conversation_id, "id": new_id("cmd"), "kind": "command", "text": text}
    await database.execute(user_id, _ADD_ENTRY, details=Jsonb(result), most=MAX_COMMAND_BYTES, **values)


async def store_feedback(
    database: Database, user_id: str, conversation_id: str, record_ids: Iterable[str], feedback: Feedback | None
) -> None:
    """Stores feedback on these shown records, None for none. Raises `NotFound` and stores nothing if one is missing."""
    records = set(record_ids)
    where = {"conversation": conversation_id, "records": list(records), "feedback": feedback}
    async with database.transaction(user_id) as tx:
        await tx.execute(_LOCK_CONVERSATION, **where)
        entries = await tx.execute(_RATE_ENTRIES, **where)
        calls = await tx.execute(_RATE_CALLS, **where)
        rated = {row["id"] for row in [*await entries.fetchall(), *await calls.fetchall()]}
        if rated != records:
            await tx.roll_back()
    if rated != records:
        raise NotFound.of("item", min(records - rated))
