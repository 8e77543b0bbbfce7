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
from backend.tools.table import starting
from backend.turn.run import Run
from backend.turn.waiting.decisions import CHANGED, ENDING
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
    done, works = await by_agents.found()
    decided = _as_now(await approvals.read(asked), done, policy)
    return Waited(await reading.rows_of(steps), decided, done, works)


def _as_now(asked: Sequence[Approval], by_agents: Sequence[Step], policy: Policy) -> list[Approval]:
    """Where an agent was started when it could reach something else, that is why all it asked is refused: it ends."""
    approved = [one for one in asked if one.decision == "approved"]
    ids = {one.id for one in approved if one.reach != policy.reach_of(one.call["name"])}
    begun = {step.call_id: step for step in by_agents if step.kind == "task"}  # the last of a call: ids repeat
    agents = {call for call, step in begun.items() if _reaches_else(step, policy)}
    ids |= {one.id for one in asked if one.of_call in agents and one.reason not in ENDING}
    return [replace(one, decision="refused", reason=CHANGED) if one.id in ids else one for one in asked]


def _reaches_else(step: Step, policy: Policy) -> bool:
    """Whether an agent that began with this step needs consent, and would be told otherwise on its card now."""
    tool = starting(step.agent)
    return policy.may_ask(tool) and step.content.get("reach") != policy.reach_of(tool)
