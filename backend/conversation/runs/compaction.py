"""What is known of a conversation that its person wants summarised, and that they asked for it."""

from dataclasses import dataclass

from psycopg.types.json import Jsonb
from sqlalchemy import bindparam, func, literal, select
from sqlalchemy.dialects.postgresql import JSONB, insert

from backend.conversation import reading
from backend.conversation.reading import MESSAGES, Recent
from backend.conversation.runs.leases import LEASED, RUNS
from backend.conversation.statements import LOAD_CONVERSATION
from backend.errors import NotFound
from service.database import Pipeline, Statement, new_id

_CONVERSATION, _OWNER = bindparam("conversation"), bindparam("owner")
_LEASED = Statement(
    select(RUNS.c.id).where(
        RUNS.c.conversation_id == _CONVERSATION,
        RUNS.c.user_id == _OWNER,
        LEASED,
    )
)
_NEWEST_RUN = Statement(
    select(MESSAGES.c.run_id)
    .where(
        MESSAGES.c.conversation_id == _CONVERSATION,
        MESSAGES.c.user_id == _OWNER,
        MESSAGES.c.superseded_by.is_(None),
        MESSAGES.c.run_id.is_not(None),
    )
    .order_by(MESSAGES.c.seq.desc())
    .limit(literal(1))
)
# It has ended when it begins, and is no run of a conversation: all that it does is count.
_ASKED = Statement(
    insert(RUNS).values(
        id=bindparam("run"),
        user_id=_OWNER,
        status=literal("ended"),
        outcome=literal("completed"),
        usage=bindparam("used", type_=JSONB),
        ended_at=func.now(),
    )
)


@dataclass(frozen=True)
class Found:
    """Whether a run holds the conversation's lease, and the run that its shown path ends with."""

    answering: bool
    run_id: str | None
    recent: Recent


async def look(pipeline: Pipeline, conversation_id: str, *, user_id: str) -> Found:
    """Raises `NotFound`."""
    whose = {"conversation": conversation_id, "owner": user_id}
    conversation = await pipeline.send(LOAD_CONVERSATION, **whose)
    leased = await pipeline.send(_LEASED, **whose)
    newest = await pipeline.send(_NEWEST_RUN, **whose)
    sent = await reading.send_recent(pipeline, conversation_id, user_id=user_id)
    if await conversation.fetchone() is None:
        raise NotFound
    answering, run = await leased.fetchone(), await newest.fetchone()
    return Found(answering is not None, run["run_id"] if run else None, await sent.recent())


async def ask(pipeline: Pipeline, *, user_id: str, model: str) -> None:
    """Count it as one of the person's turns; what it uses is counted for the run that the summary belongs to."""
    used = Jsonb({"model": model, "requests": 0, "input_tokens": 0, "output_tokens": 0})
    await pipeline.send(_ASKED, run=new_id("run"), owner=user_id, used=used)
