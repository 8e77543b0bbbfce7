"""What a run that waited goes on from."""

from collections.abc import Sequence

from sqlalchemy.ext.asyncio import AsyncEngine

from backend.conversation import reading
from backend.conversation.agents import steps as agent_steps
from backend.conversation.agents.steps import Step
from backend.conversation.rows import StoredItem
from backend.conversation.runs import approvals
from backend.conversation.runs.approvals import Approval
from backend.turn.run import Run
from service.database import pipelined


async def load(engine: AsyncEngine, run: Run) -> tuple[list[StoredItem], list[Approval], Sequence[Step]]:
    """The run's calls and their outputs, in order, all that it asked, and what its agents did; one round trip."""
    async with pipelined(engine, run.user_id) as pipeline:
        steps = await reading.send_steps(pipeline, run.conversation_id, run.id, user_id=run.user_id)
        asked = await approvals.of_run(pipeline, run.id, user_id=run.user_id)
        by_agents = await agent_steps.of_runs(pipeline, run.conversation_id, [run.id], user_id=run.user_id)
    return await reading.rows_of(steps), await approvals.read(asked), await agent_steps.read(by_agents)
