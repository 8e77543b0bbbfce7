"""What a person allows in a conversation without being asked again: rows, so that every process agrees."""

from sqlalchemy import Text, bindparam, select
from sqlalchemy.dialects.postgresql import insert

from backend.conversation.models import Consent
from service.database import Pipeline, Statement
from service.database.pipeline import Result

CONSENTS = Consent.metadata.tables["consents"]
_OWNER, _CONVERSATION = bindparam("owner", type_=Text), bindparam("conversation", type_=Text)
_ADD = Statement(
    insert(CONSENTS)
    .values(user_id=_OWNER, conversation_id=_CONVERSATION, tool=bindparam("tool", type_=Text))
    .on_conflict_do_nothing()
)
_GIVEN = Statement(
    select(CONSENTS.c.tool).where(CONSENTS.c.user_id == _OWNER, CONSENTS.c.conversation_id == _CONVERSATION)
)


async def give(pipeline: Pipeline, conversation_id: str, tool: str, *, user_id: str) -> None:
    await pipeline.send(_ADD, owner=user_id, conversation=conversation_id, tool=tool)


async def given(pipeline: Pipeline, conversation_id: str, *, user_id: str) -> Result:
    """A row for each `tool` that is allowed."""
    return await pipeline.send(_GIVEN, owner=user_id, conversation=conversation_id)
