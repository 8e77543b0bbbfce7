"""Conversations as the run API names them: by their own id, or by a name that their person chose."""

from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import bindparam, select, update
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncEngine

from backend.conversation import rows
from backend.conversation.items import Said
from backend.conversation.rows import StoredItem
from backend.conversation.runs.leases import CONVERSATIONS
from backend.conversations import ids
from backend.errors import NotFound
from service.database import Pipeline, Statement, pipelined, transaction
from service.database.pipeline import Result

is_ours, can_be, check = ids.is_generated, ids.is_valid, ids.check_chat_id
_BY_NAME = "conversations_by_name"

_SAID = Statement("""
    SELECT seq, id, kind, item, feedback FROM messages
    WHERE user_id = %(owner)s AND conversation_id = %(conversation)s
    AND kind = 'user_message' AND superseded_by IS NULL ORDER BY seq DESC LIMIT 100
""")


class Chat(NamedTuple):
    id: str
    name: str | None
    title: str | None
    created_at: datetime
    leaf_run_id: str | None


_CHAT = select(*(CONVERSATIONS.c[name] for name in Chat._fields))
_TITLED = (
    CONVERSATIONS.c.user_id == bindparam("owner"),
    CONVERSATIONS.c.id == bindparam("conversation"),
    CONVERSATIONS.c.title == bindparam("before"),
    CONVERSATIONS.c.name.is_(None),
)
_IS_TITLED = Statement(select(CONVERSATIONS.c.id).where(*_TITLED))
_ENTITLE = Statement(update(CONVERSATIONS).where(*_TITLED).values(title=bindparam("better")))


async def find(engine: AsyncEngine, chat_id: str, *, user_id: str) -> Chat | None:
    """The person's chat of this id or name."""
    key = CONVERSATIONS.c.id if is_ours(chat_id) else CONVERSATIONS.c.name
    query = _CHAT.where(CONVERSATIONS.c.user_id == user_id, key == chat_id)
    async with transaction(engine, user_id) as session:
        row = (await (await session.connection()).execute(query)).first()
    return Chat(*row) if row else None


async def page(engine: AsyncEngine, *, user_id: str, limit: int, after: str | None) -> tuple[list[Chat], bool]:
    """The person's chats, the newest first, at most `limit` of them after the one named; and whether there are more.

    Raises `NotFound` where there is no chat of that id or name.
    """
    query = _CHAT.where(CONVERSATIONS.c.user_id == user_id).order_by(CONVERSATIONS.c.id.desc()).limit(limit + 1)
    if after is not None:
        last = await find(engine, after, user_id=user_id)
        if last is None:
            raise NotFound
        query = query.where(CONVERSATIONS.c.id < last.id)
    async with transaction(engine, user_id) as session:
        found: list[Any] = list((await (await session.connection()).execute(query)).all())
    return [Chat(*row) for row in found[:limit]], len(found) > limit


async def last_said(engine: AsyncEngine, conversation_id: str, text: str, *, user_id: str) -> str | None:
    """The id of the person's newest message of this text that is shown, among their last ones."""
    async with pipelined(engine, user_id) as pipeline:
        found = await pipeline.send(_SAID, owner=user_id, conversation=conversation_id)
    said = ((row["id"], rows.to_value(StoredItem(**row))) for row in await found.fetchall())
    return next((one for one, item in said if isinstance(item, Said) and item.text == text), None)


async def send_is_titled(pipeline: Pipeline, *, conversation_id: str, user_id: str, title: str) -> Result:
    """Whether the conversation has this title still, and no name: the result is its id, or nothing."""
    return await pipeline.send(_IS_TITLED, conversation=conversation_id, owner=user_id, before=title)


async def send_title(pipeline: Pipeline, *, conversation_id: str, user_id: str, title: str, better: str) -> None:
    """Give the conversation a better title, if it has this one still, and no name."""
    await pipeline.send(_ENTITLE, conversation=conversation_id, owner=user_id, before=title, better=better)


def name_is_taken(error: DBAPIError) -> bool:
    """Whether a conversation was refused because its person has another of the same name."""
    return _constraint(error) == _BY_NAME


def _constraint(error: DBAPIError) -> str | None:
    diagnosis = getattr(error.orig, "diag", None)
    return getattr(diagnosis, "constraint_name", None)
