"""POSTs that a program may send again, by the key that it sent with them: what was done is not done twice."""

from dataclasses import dataclass
from typing import Any

from psycopg.types.json import Jsonb
from sqlalchemy import Integer, LargeBinary, Text, bindparam, delete, func, literal, select, update
from sqlalchemy.dialects.postgresql import JSONB, insert
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncEngine

from backend.conversation.models import KeptRequest
from backend.conversation.runs import leases
from backend.conversations.idempotency import IdempotencyKey as Keyed
from backend.errors import LimitReached
from service.database import Pipeline, Statement, pipelined

HOURS = 24
_AN_HOUR = 3600  # seconds
MOST = 10_000
"""How many requests are kept of one person."""
_TOO_MANY = (
    f"You have reached the limit of {MOST:,} requests with an idempotency key in {HOURS} hours. "
    "Send this one without a key, or try again later."
)
KEPT = KeptRequest.metadata.tables["kept_requests"]
_OWNER, _KEY = bindparam("owner", type_=Text), bindparam("key", type_=Text)
_REQUEST = bindparam("request", type_=LargeBinary)
_MINE = (KEPT.c.user_id == _OWNER, KEPT.c.key == _KEY)
_PRIMARY_KEY = "kept_requests_pkey"

_A_DAY_AGO = func.now() - func.make_interval(0, 0, 0, 0, HOURS)
_FORGET_OLD = Statement(delete(KEPT).where(*_MINE, KEPT.c.created_at < _A_DAY_AGO))
_FIND = Statement(
    select(
        KEPT.c.request,
        KEPT.c.run_id,
        KEPT.c.status,
        KEPT.c.answer,
        func.extract("epoch", func.now() - KEPT.c.created_at).label("seconds"),
    ).where(*_MINE)
)
# Only with the run that it begins: what is refused keeps nothing.
_KEEP_WITH_RUN = Statement(
    insert(KEPT).from_select(
        ["user_id", "key", "request", "run_id"],
        select(_OWNER, _KEY, _REQUEST, bindparam("run", type_=Text)).where(leases.HOLDS),
    )
)
_NEWEST = select(literal(1)).where(KEPT.c.user_id == _OWNER).limit(literal(MOST)).subquery()
_IS_ROOM = select((func.count() < MOST).label("is_room")).select_from(_NEWEST)
_ROOM = Statement(_IS_ROOM)
_KEEP = Statement(
    insert(KEPT)
    .from_select(["user_id", "key", "request"], select(_OWNER, _KEY, _REQUEST).where(_IS_ROOM.scalar_subquery()))
    .on_conflict_do_nothing(index_elements=["user_id", "key"])
    .returning(KEPT.c.key)
)
_ANSWER = Statement(
    update(KEPT)
    .where(*_MINE)
    .values(status=bindparam("status", type_=Integer), answer=bindparam("answer", type_=JSONB))
)
_GIVE_UP = Statement(delete(KEPT).where(*_MINE, KEPT.c.run_id.is_(None), KEPT.c.status.is_(None)))


@dataclass(frozen=True)
class Kept:
    """What became of a request: the run that it began, or an answer, or neither yet. `seconds` is how long ago."""

    request: bytes
    run_id: str | None
    status: int | None
    answer: dict[str, Any] | None
    seconds: float


async def find(engine: AsyncEngine, keyed: Keyed, *, user_id: str) -> Kept | None:
    """What is kept under the key, for a day; one round trip."""
    mine = {"owner": user_id, "key": keyed.key}
    async with pipelined(engine, user_id) as pipeline:
        await pipeline.send(_FORGET_OLD, **mine)
        found = await pipeline.send(_FIND, **mine)
    row = await found.fetchone()
    return Kept(**{**row, "request": bytes(row["request"]), "seconds": float(row["seconds"])}) if row else None


async def keep_with_run(pipeline: Pipeline, keyed: Keyed | None, *, run_id: str, user_id: str) -> None:
    """Keep a request that has a key with the run that it begins, if that holds its lease.

    For a key that is there already the transaction fails, and nothing is begun: see `is_repeated`. Raises
    `LimitReached` where no more are kept of the person.
    """
    if keyed is None:
        return
    room = await (await pipeline.send(_ROOM, owner=user_id)).fetchone()
    if room is None or not room["is_room"]:
        raise LimitReached(_TOO_MANY, retry_seconds=_AN_HOUR)
    await pipeline.send(_KEEP_WITH_RUN, owner=user_id, run=run_id, key=keyed.key, request=keyed.request)


async def begin(engine: AsyncEngine, keyed: Keyed, *, user_id: str) -> bool:
    """Keep a request before it is carried out; False for a key that is there already.

    Raises `LimitReached` where no more are kept of the person.
    """
    async with pipelined(engine, user_id) as pipeline:
        kept = await pipeline.send(_KEEP, owner=user_id, key=keyed.key, request=keyed.request)
        there = await pipeline.send(_FIND, owner=user_id, key=keyed.key)
    if await kept.fetchone() is not None:
        return True
    if await there.fetchone() is None:
        raise LimitReached(_TOO_MANY, retry_seconds=_AN_HOUR)
    return False


async def answer(engine: AsyncEngine, keyed: Keyed, status: int, answered: dict[str, Any], *, user_id: str) -> None:
    """Keep what the request was answered."""
    async with pipelined(engine, user_id) as pipeline:
        await pipeline.send(_ANSWER, owner=user_id, key=keyed.key, status=status, answer=Jsonb(answered))


async def give_up(engine: AsyncEngine, keyed: Keyed, *, user_id: str) -> None:
    """Keep nothing of a request that was refused: it may be sent again when it can be carried out."""
    async with pipelined(engine, user_id) as pipeline:
        await pipeline.send(_GIVE_UP, owner=user_id, key=keyed.key)


def is_repeated(error: DBAPIError) -> bool:
    """Whether a run was not begun because another request of the same key had begun one."""
    diagnosis = getattr(error.orig, "diag", None)
    return getattr(diagnosis, "constraint_name", None) == _PRIMARY_KEY
