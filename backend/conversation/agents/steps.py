"""What agents do for the assistant's calls, as rows: each step before its tools run, and each output as it comes.

Of a kind `task` the content is what the agent was asked to do, of a `step` what its model said and the `calls` that it
wants made, of an `output` the `call_id`, the text that its model reads, and the `work` and `number` where it is shown,
of an `end` the `outcome` and the text that the assistant's model reads. Details are what a person may unfold: they are
never read by a model.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from psycopg.types.json import Jsonb

from backend.conversation.acting import Acting
from backend.conversation.items import Json
from backend.conversation.models import AgentStep
from backend.conversation.runs.limits import ONE_BY_ONE
from service.database import Pipeline, Statement
from service.database.pipeline import Result

STEPS = AgentStep.metadata.tables["agent_steps"]
Kind = Literal["task", "step", "output", "end"]

_ADD = Statement("""
    INSERT INTO agent_steps (user_id, run_id, call_id, seq, conversation_id, agent, kind, content, details)
    SELECT %(owner)s, id, %(call)s, %(seq)s, %(conversation)s, %(agent)s, %(kind)s, %(content)s, %(details)s
    FROM (SELECT id FROM runs WHERE user_id = %(owner)s AND id = %(run)s AND status = 'running' FOR SHARE) AS held
    RETURNING seq
""")
_COUNT = Statement("""
    UPDATE runs SET agent_runs = agent_runs + 1
    WHERE user_id = %(owner)s AND id = %(run)s AND status = 'running' AND (%(most)s::int IS NULL OR %(most)s > (
        SELECT coalesce(sum(agent_runs), 0) FROM runs AS today
        WHERE today.user_id = %(owner)s AND today.started_at > now() - interval '1 day'
    )) RETURNING id
""")
_OF_RUNS = Statement("""
    SELECT run_id, call_id, seq, agent, kind, content, created_at FROM agent_steps
    WHERE user_id = %(owner)s AND conversation_id = %(conversation)s AND run_id = ANY (%(runs)s) ORDER BY run_id, seq
""")
_OF_CALLS = Statement("""
    SELECT run_id, call_id, seq, agent, kind, content, created_at FROM agent_steps
    WHERE user_id = %(owner)s AND conversation_id = %(conversation)s AND call_id = ANY (%(calls)s) ORDER BY run_id, seq
""")
_SHOWN_AT = Statement("""
    SELECT run_id, call_id, seq, agent, kind, content, created_at, details FROM agent_steps
    WHERE user_id = %(owner)s AND conversation_id = %(conversation)s AND kind = 'output'
        AND content->>'work' = %(work)s AND content->>'number' = %(number)s
""")
_DETAILED = Statement("""
    SELECT run_id, call_id, seq, agent, kind, content, created_at, details FROM agent_steps
    WHERE user_id = %(owner)s AND conversation_id = %(conversation)s AND run_id = %(run)s AND seq > %(after)s
    ORDER BY seq LIMIT %(most)s
""")


@dataclass(frozen=True)
class Step:
    run_id: str
    call_id: str
    seq: int
    agent: str
    kind: Kind
    content: Json
    created_at: datetime | None = None
    details: Json | None = None


async def add(pipeline: Pipeline, conversation_id: str, step: Step, acting: Acting) -> Result:
    """Write a step; the result is nothing when the run's lease was lost."""
    details = None if step.details is None else Jsonb(step.details)
    return await pipeline.send(
        _ADD,
        owner=acting.user_id,
        run=step.run_id,
        call=step.call_id,
        seq=step.seq,
        conversation=conversation_id,
        agent=step.agent,
        kind=step.kind,
        content=Jsonb(step.content),
        details=details,
    )


async def count(pipeline: Pipeline, run_id: str, *, user_id: str, per_day: int | None) -> Result:
    """Count one more agent; the result is nothing where the person had so many in a day, or the lease was lost."""
    await pipeline.send(ONE_BY_ONE, owner=user_id)
    return await pipeline.send(_COUNT, owner=user_id, run=run_id, most=per_day)


async def of_runs(pipeline: Pipeline, conversation_id: str, run_ids: Collection[str], *, user_id: str) -> Result:
    """The steps of these runs in order, without their details: rows for `read`."""
    return await pipeline.send(_OF_RUNS, owner=user_id, conversation=conversation_id, runs=list(run_ids))


async def of_calls(pipeline: Pipeline, conversation_id: str, call_ids: Collection[str], *, user_id: str) -> Result:
    """The steps that agents made for calls of these ids, in order, without their details: rows for `read`."""
    return await pipeline.send(_OF_CALLS, owner=user_id, conversation=conversation_id, calls=list(call_ids))


async def shown_at(pipeline: Pipeline, conversation_id: str, work: str, number: int, *, user_id: str) -> Result:
    """The output that is shown there, with its details: a row for `read`, or none."""
    return await pipeline.send(_SHOWN_AT, owner=user_id, conversation=conversation_id, work=work, number=str(number))


async def page(pipeline: Pipeline, conversation_id: str, run_id: str, *, user_id: str, after: int, most: int) -> Result:
    """The steps of a run after a number, with their details: rows for `read`."""
    return await pipeline.send(
        _DETAILED, owner=user_id, conversation=conversation_id, run=run_id, after=after, most=most
    )


async def read(result: Result) -> Sequence[Step]:
    return [Step(**row) for row in await result.fetchall()]
