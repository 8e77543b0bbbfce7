"""What a run that waited goes on from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sqlalchemy.ext.asyncio import AsyncEngine

from backend.conversation import reading
from backend.conversation.agents import steps as agent_steps
from backend.conversation.agents.steps import Step
from backend.conversation.items import Work
from backend.conversation.rows import StoredItem
from backend.conversation.runs import approvals
from backend.conversation.runs.approvals import Approval
from backend.tools.consent.policy import Policy
from backend.turn.run import Run
from backend.turn.waiting.decisions import CHANGED
from service.database import pipelined


@dataclass(frozen=True)
class Waited:
    """A run's calls and their outputs, in order, all that it asked, and what its agents did, with what is shown of it.

    `last` is what it asked at last. What was approved and may reach something else by now is refused in it.
    """

    rows: Sequence[StoredItem]
    asked: Sequence[Approval]
    by_agents: Sequence[Step]
    works: Mapping[str, Work]

    @property
    def last(self) -> Sequence[Approval]:
        return approvals.of_last_wait(self.asked)


async def load(engine: AsyncEngine, run: Run, policy: Policy) -> Waited:
    """In one round trip."""
    async with pipelined(engine, run.user_id) as pipeline:
        steps = await reading.send_steps(pipeline, run.conversation_id, run.id, user_id=run.user_id)
        asked = await approvals.of_run(pipeline, run.id, user_id=run.user_id)
        by_agents = await agent_steps.of_run(pipeline, run.conversation_id, run.id, user_id=run.user_id)
    decided = _as_now(await approvals.read(asked), policy)
    return Waited(await reading.rows_of(steps), decided, *await by_agents.found())


def _as_now(asked: Sequence[Approval], policy: Policy) -> list[Approval]:
    """Also what an agent asked is refused that was started when it could reach something else."""
    approved = [one for one in asked if one.decision == "approved"]
    changed = [one for one in approved if one.reach != policy.reach_of(one.call["name"])]
    ids, agents = {one.id for one in changed}, {one.call["call_id"] for one in changed if one.of_call is None}
    ids |= {one.id for one in approved if one.of_call in agents}
    return [replace(one, decision="refused", reason=CHANGED) if one.id in ids else one for one in asked]
