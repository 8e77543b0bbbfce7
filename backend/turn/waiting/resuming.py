"""What a run that waited goes on from."""

from sqlalchemy.ext.asyncio import AsyncEngine

from backend.conversation import reading
from backend.conversation.rows import StoredItem
from backend.conversation.runs import approvals
from backend.conversation.runs.approvals import Approval
from backend.turn.run import Run
from service.database import pipelined


async def load(engine: AsyncEngine, run: Run) -> tuple[list[StoredItem], list[Approval]]:
    """The run's calls and their outputs, in order, and all that it asked; one round trip."""
    async with pipelined(engine, run.user_id) as pipeline:
        steps = await reading.send_steps(pipeline, run.conversation_id, run.id, user_id=run.user_id)
        asked = await approvals.of_run(pipeline, run.id, user_id=run.user_id)
    return await reading.rows_of(steps), await approvals.read(asked)
