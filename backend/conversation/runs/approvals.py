"""The statements of calls that wait for their person's consent, and of the runs that wait with them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from psycopg.types.json import Jsonb
from sqlalchemy import Float, Text, any_, bindparam, func, literal, select, true, update
from sqlalchemy.dialects.postgresql import ARRAY, JSONB, insert

from backend.conversation.models import Approval as ApprovalRow
from backend.conversation.models import RunEvent
from backend.conversation.runs.leases import CONVERSATIONS, LEASED, RUNNING, RUNS, known_of_person
from service.database import Pipeline, Statement
from service.database.pipeline import Result

Decision = Literal["approved", "refused"]

APPROVALS = ApprovalRow.metadata.tables["approvals"]
_EVENTS = RunEvent.metadata.tables["run_events"]
_OWNER, _CONVERSATION = bindparam("owner", type_=Text), bindparam("conversation", type_=Text)
_RUN, _ID = bindparam("run", type_=Text), bindparam("id", type_=Text)
_WAITING = literal("waiting")
_MINE = (RUNS.c.user_id == _OWNER, RUNS.c.id == _RUN)


@dataclass(frozen=True)
class Approval:
    """A call that waits for its person's consent, or did; see the model of its row.

    `call` has `call_id`, `name` and `arguments`, which are JSON as the model wrote it. One of the assistant's own has
    neither `agent` nor `of_call`.
    """

    id: str
    conversation_id: str
    run_id: str
    step_id: str
    position: int
    call: dict[str, Any]
    key: str
    text: str
    item_id: str
    created_at: datetime
    agent: str | None = None
    of_call: str | None = None
    reach: str | None = None
    decision: Decision | None = None
    reason: str | None = None
    decided_at: datetime | None = None


_COLUMNS = tuple(Approval.__dataclass_fields__)
_GIVEN = _COLUMNS[: _COLUMNS.index("decision")]
_ROW = [APPROVALS.c[name] for name in _COLUMNS]
_IN_ORDER = tuple(APPROVALS.c[name] for name in ("created_at", "step_id", "position", "id"))
_ADD = Statement(
    insert(APPROVALS).values(
        {"user_id": _OWNER, **{name: bindparam(name, type_=APPROVALS.c[name].type) for name in _GIVEN}}
    )
)
_WAIT = Statement(
    update(RUNS)
    .where(*_MINE, RUNS.c.status == RUNNING, RUNS.c.stop_requested.is_(False))
    .values(status=_WAITING, followed=true(), usage=bindparam("used", type_=JSONB))
    .returning(RUNS.c.id)
)
_OPEN = (RUNS.c.user_id == _OWNER, RUNS.c.conversation_id == _CONVERSATION, LEASED)
_LOCK = Statement(select(RUNS.c.id, RUNS.c.status).where(*_OPEN).with_for_update())
_OF_APPROVAL = select(APPROVALS.c.run_id).where(
    APPROVALS.c.user_id == _OWNER, APPROVALS.c.id == _ID, APPROVALS.c.conversation_id == _CONVERSATION
)
_LOCK_RUN_OF = Statement(
    select(RUNS.c.id).where(RUNS.c.user_id == _OWNER, RUNS.c.id == _OF_APPROVAL.scalar_subquery()).with_for_update()
)
# The statement's time, not the transaction's: under the run's lock, decisions have the order in which they are told.
_DECIDED = {
    "decision": bindparam("decision", type_=Text),
    "reason": bindparam("reason", type_=Text),
    "decided_at": func.statement_timestamp(),
}
_WAITS = select(RUNS.c.id).where(RUNS.c.user_id == _OWNER, RUNS.c.id == APPROVALS.c.run_id, RUNS.c.status == _WAITING)
_DECIDE = Statement(
    update(APPROVALS)
    .where(APPROVALS.c.user_id == _OWNER, APPROVALS.c.id == _ID, APPROVALS.c.conversation_id == _CONVERSATION)
    .where(APPROVALS.c.decision.is_(None), _WAITS.exists())
    .values(**_DECIDED)
    .returning(APPROVALS.c.id)
)
_REFUSE_ALL = Statement(
    update(APPROVALS)
    .where(APPROVALS.c.user_id == _OWNER, APPROVALS.c.run_id == _RUN, APPROVALS.c.decision.is_(None))
    .values(**_DECIDED)
    .returning(APPROVALS.c.id)
)
_OF_RUN = Statement(select(*_ROW).where(APPROVALS.c.user_id == _OWNER, APPROVALS.c.run_id == _RUN).order_by(*_IN_ORDER))
_OF_SAME_RUN = Statement(
    select(*_ROW)
    .where(APPROVALS.c.user_id == _OWNER, APPROVALS.c.run_id == _OF_APPROVAL.scalar_subquery())
    .order_by(*_IN_ORDER)
)
_REFUSED_OF = Statement(
    select(*_ROW)
    .where(APPROVALS.c.user_id == _OWNER, APPROVALS.c.conversation_id == _CONVERSATION)
    .where(
        APPROVALS.c.decision == literal("refused"),
        APPROVALS.c.step_id == any_(bindparam("steps", type_=ARRAY(Text))),
    )
)
_END = Statement(
    update(RUNS)
    .where(*_MINE, RUNS.c.status == _WAITING)
    .values(status=literal("ended"), outcome=literal("cancelled"), ended_at=func.now())
)


def _resume() -> Statement:
    """The conversation, with `usage` so far, `message_id` and `followed` of its run, if that waited; now it runs.

    `told` is how many events of it are published.
    """
    taken = (
        update(RUNS)
        .where(*_MINE, RUNS.c.status == _WAITING)
        .values(
            status=literal("running"),
            stop_requested=False,
            heartbeat_at=func.now(),
            worker=bindparam("worker", type_=Text),
            lease_seconds=bindparam("lease_seconds", type_=Float),
        )
        .returning(RUNS.c.conversation_id, RUNS.c.usage, RUNS.c.message_id, RUNS.c.followed)
        .cte("taken")
    )
    published = select(func.coalesce(func.max(_EVENTS.c.seq), literal(0)))
    told = published.where(_EVENTS.c.user_id == _OWNER, _EVENTS.c.run_id == _RUN).scalar_subquery().label("told")
    found = select(CONVERSATIONS, taken.c.usage, taken.c.message_id, taken.c.followed, told, *known_of_person())
    found = found.join_from(CONVERSATIONS, taken, CONVERSATIONS.c.id == taken.c.conversation_id)
    return Statement(found.where(CONVERSATIONS.c.user_id == _OWNER))


_RESUME = _resume()


async def wait(pipeline: Pipeline, run_id: str, *, user_id: str, usage: Mapping[str, Any] | None) -> Result:
    """Let a run wait that holds its lease and was not asked to stop; the result is its id, or nothing.

    It is followed from here on: whoever comes while it waits finds what it has said, although no process has it.
    """
    used = None if usage is None else Jsonb(usage)
    return await pipeline.send(_WAIT, run=run_id, owner=user_id, used=used)


async def add(pipeline: Pipeline, asked: Sequence[Approval], *, user_id: str) -> None:
    for approval in asked:
        values = {name: getattr(approval, name) for name in _GIVEN}
        await pipeline.send(_ADD, owner=user_id, **{**values, "call": Jsonb(approval.call)})


async def lock(pipeline: Pipeline, conversation_id: str, *, user_id: str) -> Result:
    """Hold the conversation's run to the transaction's end; the result is its `id` and `status`, if it has one."""
    return await pipeline.send(_LOCK, conversation=conversation_id, owner=user_id)


async def decide(
    pipeline: Pipeline, approval_id: str, decision: Decision, *, reason: str | None, conversation_id: str, user_id: str
) -> tuple[Result, Result]:
    """Decide, unless it is decided: its id or nothing, and all approvals of its run, none if it is not there."""
    which = {"id": approval_id, "conversation": conversation_id, "owner": user_id}
    await pipeline.send(_LOCK_RUN_OF, **which)  # before it, or two who decide two of a run would both see one left
    decided = await pipeline.send(_DECIDE, **which, decision=decision, reason=reason)
    return decided, await pipeline.send(_OF_SAME_RUN, **which)


async def refuse_open(
    pipeline: Pipeline, run_id: str, *, reason: str, user_id: str
) -> tuple[Sequence[Approval], frozenset[str]]:
    """Refuse what is not decided of a locked run that waits: its approvals, and the ids of those refused only now.

    Asks the database before the pipeline's end.
    """
    refusing = await pipeline.send(_REFUSE_ALL, run=run_id, owner=user_id, decision="refused", reason=reason)
    found = await of_run(pipeline, run_id, user_id=user_id)
    return of_last_wait(await read(found)), frozenset(row["id"] for row in await refusing.fetchall())


async def end(pipeline: Pipeline, run_id: str, *, user_id: str) -> None:
    """End a run that waits as cancelled."""
    await pipeline.send(_END, run=run_id, owner=user_id)


async def resume(
    pipeline: Pipeline, run_id: str, *, user_id: str, lease_seconds: float, worker: str | None = None
) -> Result:
    """Take a waiting run's lease. The result is the row of its conversation, as `leases.claim` has it, but with the
    run's `usage`, `message_id`, `followed` and `told`; nothing for a run that does not wait.
    """
    return await pipeline.send(_RESUME, run=run_id, owner=user_id, lease_seconds=lease_seconds, worker=worker)


async def of_run(pipeline: Pipeline, run_id: str, *, user_id: str) -> Result:
    """The approvals of a run, in the order in which they were asked for: rows for `read`."""
    return await pipeline.send(_OF_RUN, run=run_id, owner=user_id)


async def beside(pipeline: Pipeline, approval_id: str, *, conversation_id: str, user_id: str) -> Result:
    """The approvals of the run that asked this in the conversation: rows for `read`, none if it is not there."""
    return await pipeline.send(_OF_SAME_RUN, id=approval_id, conversation=conversation_id, owner=user_id)


async def refused_of(pipeline: Pipeline, conversation_id: str, steps: Sequence[str], *, user_id: str) -> Result:
    """What was refused in these steps: rows for `read`."""
    return await pipeline.send(_REFUSED_OF, conversation=conversation_id, steps=list(steps), owner=user_id)


async def read(result: Result) -> list[Approval]:
    return [Approval(**row) for row in await result.fetchall()]


def of_last_wait(approvals: Sequence[Approval]) -> list[Approval]:
    """Those that were asked for last: a run may wait more than once, and for a step's agents, too."""
    last = approvals[-1]

    def is_of_it(one: Approval) -> bool:
        # Versions before agents asked gave each a moment of its own, and asked once in a step.
        of_assistant = one.of_call is None and last.of_call is None
        return one.created_at == last.created_at or (of_assistant and one.step_id == last.step_id)

    return [one for one in approvals if is_of_it(one)]
