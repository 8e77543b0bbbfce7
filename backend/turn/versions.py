"""Versions of a conversation: an answer that stands beside another one, and which of them is shown."""

from sqlalchemy.ext.asyncio import AsyncEngine

from backend.conversation.items import Hidden
from backend.conversation.model_input import history
from backend.conversation.runs import beside, branches, leases
from backend.conversation.runs.branches import Moved
from backend.tools.table import READING
from backend.turn import reports
from backend.turn.run import Run
from backend.turn.waiting import decisions
from service.database import Pipeline, pipelined


async def begin_instead(pipeline: Pipeline, run: Run, message_id: str) -> list[Hidden]:
    """Replace what followed a message, and the message too if another was said, by a run that has just begun.

    Returns what the model is to know of what was replaced. Raises `NotFound` when there is no such message.
    """
    again = run.said is None
    dropped = await beside.send_beside(
        pipeline, run.id, message_id, again=again, user_id=run.user_id, conversation_id=run.conversation_id
    )
    attempted = history.abandoned_attempt(dropped or [], reading=READING, edited=not again)
    return [attempted] if attempted else []


async def show(
    engine: AsyncEngine, conversation_id: str, run_id: str | None, *, user_id: str, to_its_end: bool = False
) -> str | None:
    """Show the conversation as it was after a run, or before its first; returns the run that it ends with.

    `to_its_end` shows what followed the run, too, when it was shown last. Tasks stay as they are, and what waits for
    consent is refused. Raises `NotFound`, and `Busy` while a run is running.
    """
    where = {"user_id": user_id, "conversation_id": conversation_id}
    async with pipelined(engine, user_id) as pipeline:
        leaf, end = await branches.find(pipeline, run_id, to_its_end=to_its_end, **where)
        if end == leaf:
            return end
        await leases.lock_conversation(pipeline, **where)
        refused = await decisions.refuse(pipeline, conversation_id, reason=decisions.AWAY, user_id=user_id)
        await branches.show(pipeline, end, note=_of_what_was_done_elsewhere, **where)
    if refused:
        reports.waiting_ended(refused[0].run_id, conversation_id, user_id)
    return end


def _of_what_was_done_elsewhere(moved: Moved) -> Hidden | None:
    return history.elsewhere(moved.elsewhere, moved.here, reading=READING)
