"""What one run has done so far, as it is stored: said and called by the assistant, and by agents that worked for it."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy.ext.asyncio import AsyncEngine

from backend.conversation import reading
from backend.conversation.agents import steps
from backend.conversation.agents.steps import Step
from backend.conversation.rows import StoredItem
from backend.conversation.runs import approvals
from backend.conversation.runs.approvals import Approval
from backend.conversation.runs.leases import Outcome
from backend.errors import NotFound
from service.database import Statement, pipelined

_RUN = Statement("""
    SELECT conversation_id, status, outcome FROM runs
    WHERE user_id = %(owner)s AND id = %(run)s AND conversation_id IS NOT NULL
""")
# Nothing of a run comes before the message that it answers: the rows of a long conversation are not gone through.
_ROWS = Statement("""
    WITH run AS (SELECT conversation_id, message_id FROM runs WHERE user_id = %(owner)s AND id = %(run)s)
    SELECT seq, id, kind, item, feedback FROM messages WHERE user_id = %(owner)s AND run_id = %(run)s
    AND conversation_id = (SELECT conversation_id FROM run) AND kind = ANY (%(kinds)s) AND seq >= coalesce((
        SELECT asked.seq FROM messages AS asked JOIN run ON asked.conversation_id = run.conversation_id
        AND asked.id = run.message_id WHERE asked.user_id = %(owner)s
    ), 0) ORDER BY seq
""")
_STEPS = Statement("""
    SELECT run_id, call_id, seq, agent, kind, content, created_at FROM agent_steps
    WHERE user_id = %(owner)s AND run_id = %(run)s AND kind = 'step' ORDER BY seq
""")
_KINDS = ("user_message", "assistant_message", "workflow", "tool_calls", "tool_output", "end_of_turn", "task", "widget")


@dataclass(frozen=True)
class Story:
    """`asked` is what its person was asked for, and `by_agents` what the models of agents wanted, in order."""

    run_id: str
    conversation_id: str
    status: str
    outcome: Outcome | None
    rows: Sequence[StoredItem]
    asked: Sequence[Approval]
    by_agents: Sequence[Step]


async def load(engine: AsyncEngine, run_id: str, *, user_id: str) -> Story:
    """One round trip; raises `NotFound` for what is not the person's, or was deleted."""
    mine = {"owner": user_id, "run": run_id}
    async with pipelined(engine, user_id) as pipeline:
        running = await pipeline.send(_RUN, **mine)
        rows = await pipeline.send(_ROWS, **mine, kinds=list(_KINDS))
        asking = await approvals.of_run(pipeline, run_id, user_id=user_id)
        working = await pipeline.send(_STEPS, **mine)
    run = await running.fetchone()
    if run is None:
        raise NotFound
    return Story(
        run_id,
        **run,
        rows=await reading.rows_of(rows),
        asked=await approvals.read(asking),
        by_agents=await steps.read(working),
    )
