"""What a person decides of the calls of a run that waits: each in one transaction, under the run's row lock."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy.ext.asyncio import AsyncEngine

from backend.cards.approval_card import NOT_ASKED, card
from backend.conversation import statements
from backend.conversation.acting import Acting
from backend.conversation.items import Hidden, Item, Said, Widget
from backend.conversation.model_input.history import NOT_MADE
from backend.conversation.runs import approvals, consents, events, inbox, limits
from backend.conversation.runs.approvals import Approval, Decision
from backend.conversation.runs.limits import Limits
from backend.errors import BackendError, LimitReached, NotFound
from backend.tools import table
from backend.tools.consent.policy import deleted_by
from backend.turn.following.payloads import to_payload
from backend.turn.log import Asked, Decided, Done, Event, Replaced, end_with
from backend.turn.waiting import agents
from backend.turn.waiting.agents import Stopped
from service.database import Pipeline, pipelined

INSTEAD = "The person wrote something else instead."
STOPPED = "The person stopped this answer."
AWAY = "The person went to another version of the conversation."
CHANGED = "What it may reach is another now than what the person was asked about."
_FOR_USERS: Mapping[str | None, str] = {
    INSTEAD: "You wrote something else instead.",
    STOPPED: "You stopped this answer.",
    AWAY: "You switched to another version of the conversation.",
    CHANGED: "What this may access has changed since you were asked.",
}
"""What a card says in place of a reason that is stored for the model."""
ENDING = (INSTEAD, CHANGED)
"""Reasons for which an agent is ended that had asked."""
_INSTEAD_OF_AN_ANSWER = (INSTEAD, STOPPED, AWAY)
_NOT_MADE = "This call was not made."
_ENDED = "The answer was ended where it waited for the person: what it asked for was not done."
_ASK_AGAIN = f"{_NOT_MADE} {CHANGED} Make it again if it is still needed: they are asked anew."
_NEVER = (f"{_NOT_MADE} {reason}" for reason in _INSTEAD_OF_AN_ANSWER)
NEVER_MADE = frozenset({NOT_MADE, NOT_ASKED, _ASK_AGAIN, *_NEVER})
"""What the model reads in place of what a call that was never begun would have answered."""
_REFUSED = "The person refused this call: it was not made. Do not repeat it unless they ask for it."


class DecidedAlready(BackendError):
    """This was decided already."""

    code, status = "already_decided", 400

    def __init__(self, approval: Approval) -> None:
        super().__init__()
        self.approval = approval


@dataclass(frozen=True)
class Lease:
    """What a run is taken back with."""

    seconds: float
    worker: str | None


@dataclass(frozen=True)
class Settled:
    """What was `decided`, and is stored and published; `asked` is all of its step.

    `resumed` is the row of the conversation of a run that goes on, as `approvals.resume` has it; None while there is
    more to decide.
    """

    decided: Sequence[Approval]
    asked: Sequence[Approval]
    resumed: dict[str, Any] | None


async def wait(
    engine: AsyncEngine,
    acting: Acting,
    asked: Sequence[Approval],
    *,
    usage: Mapping[str, Any] | None,
    told: Sequence[tuple[int, str]],
) -> bool:
    """Let the run wait for what it asks; False when its lease was lost, or somebody wants it to stop.

    `told` is all that it has said, as it is published: what is decided is told behind that, in whichever process.
    May be tried again when nobody said whether it was stored: what is there already is there.
    """
    [conversation_id] = {one.conversation_id for one in asked}
    assert acting.run_id is not None
    async with pipelined(engine, acting.user_id) as pipeline:
        # What was stored may be decided by now, and the run go on in another process.
        await approvals.lock(pipeline, conversation_id, user_id=acting.user_id)
        there = await approvals.read(await approvals.of_run(pipeline, acting.run_id, user_id=acting.user_id))
        if {one.id for one in asked} <= {one.id for one in there}:
            return True
        waits = await approvals.wait(pipeline, acting.run_id, user_id=acting.user_id, usage=usage)
        if await waits.fetchone() is None:
            return False
        cards = [shown(one) for one in asked]
        await statements.send_items(pipeline, conversation_id, cards, acting, fenced=False)
        await approvals.add(pipeline, asked, user_id=acting.user_id)
        await events.put(pipeline, acting.run_id, told, user_id=acting.user_id)
    return True


async def decide(
    engine: AsyncEngine,
    approval_id: str,
    decision: Decision,
    *,
    reason: str | None,
    always: bool,
    user_id: str,
    conversation_id: str,
    run_id: str | None,
    lease: Lease,
    most_running: int | None,
) -> Settled:
    """Store a decision and what its card says; with the last one of its run, take the run's lease.

    What is approved for `always` is not asked again in the conversation, if it may be allowed so.

    Raises `NotFound`, `DecidedAlready`, and `LimitReached` for an approval with which the run would go on beside more
    runs than the user may have. A rejection is never limited.
    """
    whose = {"user_id": user_id}
    async with pipelined(engine, user_id) as pipeline:
        if decision == "approved":
            await pipeline.send(limits.ONE_BY_ONE, owner=user_id)  # before the run's row, as a run that begins does
        deciding, of_run = await approvals.decide(
            pipeline, approval_id, decision, reason=reason, conversation_id=conversation_id, **whose
        )
        found = await approvals.read(of_run)
        approval = next((one for one in found if one.id == approval_id), None)
        if approval is None or run_id not in (None, approval.run_id):
            raise NotFound
        if await deciding.fetchone() is None:
            raise DecidedAlready(approval)
        if always and decision == "approved" and _may_last(approval):
            await consents.give(pipeline, conversation_id, approval.call["name"], approval.reach, **whose)
        of_person = Acting(user_id, approval.run_id)
        await statements.send_items(pipeline, conversation_id, [shown(approval)], of_person, fenced=False)
        await _tell(pipeline, approval.run_id, decided_events(approval), user_id=user_id)
        taken = None
        if all(one.decision for one in found):
            if decision == "approved":
                await limits.check(pipeline, Limits(running=most_running), is_new=False, **whose)
            taken = await approvals.resume(
                pipeline, approval.run_id, lease_seconds=lease.seconds, worker=lease.worker, **whose
            )
    resumed = await taken.fetchone() if taken is not None else None
    return Settled([approval], approvals.of_last_wait(found), resumed)


async def overtake(
    engine: AsyncEngine,
    said: Said,
    *,
    user_id: str,
    conversation_id: str,
    run_id: str | None,
    lease: Lease,
    most_running: int | None,
) -> Settled | None:
    """Refuse what the conversation's run asks if it waits, let it read what was said instead, and take its lease.

    None where no run waits, or another. Raises `LimitReached`, as `decide`.
    """
    whose = {"user_id": user_id}
    async with pipelined(engine, user_id) as pipeline:
        await limits.check(pipeline, Limits(running=most_running), is_new=False, **whose)
        run = await (await approvals.lock(pipeline, conversation_id, **whose)).fetchone()
        if run is None or run["status"] != "waiting" or run_id not in (None, run["id"]):
            return None
        asked, refused = await approvals.refuse_open(pipeline, run["id"], reason=INSTEAD, **whose)
        decided = [one for one in asked if one.id in refused]
        cards = [shown(one) for one in decided]
        await statements.send_items(pipeline, conversation_id, cards, Acting(user_id, run["id"]), fenced=False)
        await _tell(pipeline, run["id"], (event for one in decided for event in decided_events(one)), **whose)
        taken = await approvals.resume(pipeline, run["id"], lease_seconds=lease.seconds, worker=lease.worker, **whose)
        added = await inbox.added(
            await inbox.send_said(pipeline, said, "steer", conversation_id=conversation_id, **whose)
        )
        if added.input_id is None:
            raise LimitReached(inbox.TOO_MANY)
    row = await taken.fetchone()
    assert row is not None, "it was locked, and waited"
    return Settled(decided, asked, row)


async def refuse(
    pipeline: Pipeline, conversation_id: str, *, reason: str, user_id: str, run_id: str | None = None
) -> Sequence[Approval]:
    """End the conversation's run if it waits: what it asked is refused for this reason, and its calls were not made.

    Who follows it is told. With a run's id, only that one. Returns what was asked, and nothing where no run waits. Asks
    the database before the pipeline's end.
    """
    locked = await approvals.lock(pipeline, conversation_id, user_id=user_id)
    run = await locked.fetchone()
    if run is None or run["status"] != "waiting" or run_id not in (None, run["id"]):
        return []
    asked, refused = await approvals.refuse_open(pipeline, run["id"], reason=reason, user_id=user_id)
    of_run = Acting(user_id, run["id"])
    left, ended = await _leave(
        pipeline, conversation_id, asked, of_run, reason=reason, not_made=f"{_NOT_MADE} {reason}", status="waiting"
    )
    await approvals.end(pipeline, run["id"], user_id=user_id)
    cards = [shown(one, not_made=True) for one in asked]
    await statements.send_items(pipeline, conversation_id, [*left, *cards], of_run, fenced=False)
    told = [
        *_refused_events(asked, refused),
        *(event for one in ended for event in one.events()),
        *end_with("cancelled"),
    ]
    await _tell(pipeline, run["id"], told, user_id=user_id)
    return asked


async def _tell(pipeline: Pipeline, run_id: str, told: Iterable[Event], *, user_id: str) -> None:
    """Publish this of a run that waits, whose row is locked."""
    await events.append(pipeline, run_id, [to_payload(event) for event in told], user_id=user_id)


def refusal(approval: Approval) -> str:
    """What the model reads in place of what a refused call would have answered."""
    match approval.reason:
        case None:
            return _REFUSED
        case reason if reason == CHANGED:
            return _ASK_AGAIN
        case reason if reason in _INSTEAD_OF_AN_ANSWER:
            return f"{_NOT_MADE} {reason}"
        case reason:
            return f"{_REFUSED} Their reason: “{reason}”"


def _output(call_id: str, text: str) -> Hidden:
    """The row of a call's output that no tool has given."""
    given = {"type": "function_call_output", "call_id": call_id, "output": text}
    return Hidden(content={"kind": "tool_output", "output": given})


async def leave_unmade(
    pipeline: Pipeline, conversation_id: str, asked: Sequence[Approval], acting: Acting
) -> tuple[list[Item], list[Stopped]]:
    """What is to be stored of a step's calls where none that was asked for was made, as its turn ends; and its agents.

    Asks the database before the pipeline's end, if agents asked.
    """
    return await _leave(pipeline, conversation_id, asked, acting, reason=_ENDED, not_made=NOT_MADE, status="running")


async def _leave(
    pipeline: Pipeline,
    conversation_id: str,
    asked: Sequence[Approval],
    acting: Acting,
    *,
    reason: str,
    not_made: str,
    status: str,
) -> tuple[list[Item], list[Stopped]]:
    """End the agents of a run of this `status`: the outputs of all that was asked and what is shown, and the agents."""
    texts = [(one, refusal(one) if one.decision == "refused" else not_made) for one in asked]
    inside = [(one, text) for one, text in texts if one.of_call is not None]
    ended = await agents.end(pipeline, conversation_id, inside, acting, reason=reason, status=status)
    outputs = [_output(one.call["call_id"], text) for one, text in texts if one.of_call is None]
    outputs += [_output(one.call_id, one.text) for one in ended]
    return [*outputs, *(one.work for one in ended)], ended


def shown(approval: Approval, *, not_made: bool = False) -> Widget:
    """The card, as the approval is; of a call that was approved and is `not_made` all the same, it says so."""
    is_left = not_made and approval.decision == "approved"
    decided = "not made" if is_left or approval.reason == CHANGED else approval.decision
    call, reason = approval.call, _FOR_USERS.get(approval.reason, approval.reason)
    deletes = deleted_by(call["name"], call["arguments"]) if table.shown(call["name"]).deletes else 0
    root = card(approval.id, approval.text, decided, reason, lasting=_may_last(approval), deletes=deletes)
    return Widget(root=root, copy_text=approval.text, id=approval.item_id, created_at=approval.created_at)


def _may_last(approval: Approval) -> bool:
    """Whether it may be allowed for all of its conversation: starting an agent may, and a tool of another server's."""
    return table.shown(approval.call["name"]).asked_with is not None


def asked_events(approval: Approval) -> Iterator[Event]:
    """What a log tells of a call that waits."""
    call = approval.call
    yield Asked(approval.id, call["call_id"], call["name"], call["arguments"], approval.text, approval.agent)
    yield Done(shown(approval))


def decided_events(approval: Approval) -> Iterator[Event]:
    """What a log tells of a decision."""
    yield Decided(approval.id, approval.decision == "approved", approval.reason)
    yield Replaced(shown(approval))


def _refused_events(asked: Iterable[Approval], now: Collection[str]) -> Iterator[Event]:
    """What is told of calls of which none is made any more; of those decided before, only the card changes."""
    for one in asked:
        if one.id in now:
            yield from decided_events(one)
        else:
            yield Replaced(shown(one, not_made=True))
