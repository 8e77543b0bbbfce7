"""The rows of sessions that were signed out of: by them a copied cookie is known until it expires."""

from datetime import UTC, datetime

from sqlalchemy import bindparam, delete, func, select, text
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncEngine

from backend.conversation.models import EndedSession
from service.database import Statement, pipelined

ENDED = EndedSession.metadata.tables["ended_sessions"]
_OWNER, _ID = bindparam("owner"), bindparam("id")

_FIND = Statement(select(ENDED.c.id).where(ENDED.c.user_id == _OWNER, ENDED.c.id == _ID))
_ADD = Statement(
    insert(ENDED).values(user_id=_OWNER, id=_ID, expires_at=bindparam("expires_at")).on_conflict_do_nothing()
)
# An hour later, because the clocks of services and database may differ.
_TIDY = Statement(
    delete(ENDED).where(ENDED.c.user_id == _OWNER, ENDED.c.expires_at < func.now() - text("interval '1 hour'"))
)


async def is_ended(engine: AsyncEngine, user_id: str, session_id: str) -> bool:
    """Whether its person signed out of this session; one round trip."""
    async with pipelined(engine, user_id) as pipeline:
        found = await pipeline.send(_FIND, owner=user_id, id=session_id)
    return await found.fetchone() is not None


async def end(engine: AsyncEngine, user_id: str, session_id: str, *, expires: int) -> None:
    """Remember until it expires (Unix time) that its person signed out of this session."""
    async with pipelined(engine, user_id) as pipeline:
        await pipeline.send(_ADD, owner=user_id, id=session_id, expires_at=datetime.fromtimestamp(expires, UTC))
        await pipeline.send(_TIDY, owner=user_id)


async def tidy(engine: AsyncEngine, user_id: str) -> None:
    """Forget the person's ended sessions that have expired."""
    async with pipelined(engine, user_id) as pipeline:
        await pipeline.send(_TIDY, owner=user_id)
