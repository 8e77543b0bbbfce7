"""What a person allows in a conversation without being asked again: rows, so that every process agrees."""

from sqlalchemy import Text, bindparam, func, select
from sqlalchemy.dialects.postgresql import insert

from backend.conversation.models import Consent
from service.database import Pipeline, Statement
from service.database.pipeline import Result

CONSENTS = Consent.metadata.tables["consents"]
_OWNER, _CONVERSATION = bindparam("owner", type_=Text), bindparam("conversation", type_=Text)
_REACH = bindparam("reach", type_=Text)
_GIVE = Statement(
    insert(CONSENTS)
    .values(user_id=_OWNER, conversation_id=_CONVERSATION, tool=bindparam("tool", type_=Text), reach=_REACH)
    .on_conflict_do_update(index_elements=[*CONSENTS.primary_key], set_={"reach": _REACH, "created_at": func.now()})
)
_GIVEN = Statement(
    select(CONSENTS.c.tool, CONSENTS.c.reach).where(
        CONSENTS.c.user_id == _OWNER, CONSENTS.c.conversation_id == _CONVERSATION
    )
)


async def give(pipeline: Pipeline, conversation_id: str, tool: str, reach: str | None, *, user_id: str) -> None:
    await pipeline.send(_GIVE, owner=user_id, conversation=conversation_id, tool=tool, reach=reach)


async def given(pipeline: Pipeline, conversation_id: str, *, user_id: str) -> Result:
    """A row for each `tool` that is allowed, with the `reach` that it had."""
    return await pipeline.send(_GIVEN, owner=user_id, conversation=conversation_id)
