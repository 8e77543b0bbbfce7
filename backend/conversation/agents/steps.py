"""What agents do for the assistant's calls, as rows: each step before its tools run, and each output as it comes.

Of a kind `task` the content is what the agent was asked to do, the `work` where it is shown and a fingerprint of what
it could `reach` then, of a `step` what its model said and the `calls` that it wants made, of an `output` the `call_id`,
the text that its model reads, the `work` and `number` where it is shown, and the `files` that the call wrote, of an
`end` the `outcome` and the text that the assistant's model reads. Details are what a person may unfold: they are never
read by a model.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from psycopg.types.json import Jsonb

from backend.conversation import rows
from backend.conversation.acting import Acting
from backend.conversation.items import Json, Work
from backend.conversation.models import AgentStep
from backend.conversation.rows import StoredItem
from backend.conversation.runs.limits import ONE_BY_ONE
from service.database import Pipeline, Statement
from service.database.pipeline import Result

STEPS = AgentStep.metadata.tables["agent_steps"]
Kind = Literal["task", "step", "output", "end"]

_ADD = Statement("""
    INSERT INTO agent_steps (user_id, run_id, call_id, seq, conversation_id, agent, kind, content, details)
    SELECT %(owner)s, id, %(call)s, %(seq)s, %(conversation)s, %(agent)s, %(kind)s, %(content)s, %(details)s
    FROM (SELECT id FROM runs WHERE user_id = %(owner)s AND id = %(run)s AND status = %(status)s FOR SHARE) AS held
    RETURNING seq
""")
_COUNT = Statement("""
    UPDATE runs SET agent_runs = agent_runs + 1
    WHERE user_id = %(owner)s AND id = %(run)s AND status = 'running' AND (%(most)s::int IS NULL OR %(most)s > (
        SELECT coalesce(sum(agent_runs), 0) FROM runs AS today
        WHERE today.user_id = %(owner)s AND today.started_at > now() - interval '1 day'
    )) RETURNING id
""")
_OF_RUN = Statement("""
    SELECT run_id, call_id, seq, agent, kind, content, created_at,
        jsonb_strip_nulls(jsonb_build_object(
            'ok', details->'ok', 'path', details->'path', 'bytes', details->'bytes', 'files', details->'files'
        )) AS details
    FROM agent_steps
    WHERE user_id = %(owner)s AND conversation_id = %(conversation)s AND run_id = %(run)s ORDER BY seq
""")
_WORKS = Statement("""
    SELECT seq, id, kind, item, feedback FROM messages
    WHERE user_id = %(owner)s AND conversation_id = %(conversation)s AND id IN (
        SELECT content->>'work' FROM agent_steps
        WHERE user_id = %(owner)s AND conversation_id = %(conversation)s AND run_id = %(run)s AND kind = 'task'
    )
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
# What is written of a task is what follows it in its run: ids of calls repeat.
_WRITTEN_FOR = Statement("""
    SELECT output.conversation_id, file.path FROM agent_steps AS task
    JOIN agent_steps AS output USING (user_id, run_id, call_id)
    CROSS JOIN LATERAL jsonb_array_elements_text(output.content->'files') AS file (path)
    WHERE task.user_id = %(owner)s AND task.kind = 'task' AND task.content->>'task_id' = %(task)s
        AND output.kind = 'output' AND task.seq = (
            SELECT max(before.seq) FROM agent_steps AS before
            WHERE before.user_id = task.user_id AND before.run_id = task.run_id AND before.call_id = task.call_id
                AND before.kind = 'task' AND before.seq < output.seq
        )
    GROUP BY 1, 2 ORDER BY max(output.created_at) DESC LIMIT %(most)s
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


@dataclass(frozen=True)
class Sent:
    """What was asked for in a pipeline."""

    steps: Result
    works: Result

    async def found(self) -> tuple[Sequence[Step], dict[str, Work]]:
        """The steps of a run, in order, and the works that are shown of them, by their ids."""
        items = [rows.to_value(StoredItem(**row)) for row in await self.works.fetchall()]
        return await read(self.steps), {item.id: item for item in items if isinstance(item, Work)}


async def add(
    pipeline: Pipeline, conversation_id: str, step: Step, acting: Acting, *, status: str = "running"
) -> Result:
    """Write a step; the result is nothing when the run's lease was lost, or it has not this `status`."""
    details = None if step.details is None else Jsonb(step.details)
    return await pipeline.send(
        _ADD,
        owner=acting.user_id,
        run=step.run_id,
        status=status,
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


async def of_run(pipeline: Pipeline, conversation_id: str, run_id: str, *, user_id: str) -> Sent:
    """The steps of a run, of their details only whether each call worked, and what it wrote."""
    which = {"owner": user_id, "conversation": conversation_id, "run": run_id}
    return Sent(await pipeline.send(_OF_RUN, **which), await pipeline.send(_WORKS, **which))


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


async def written_for(pipeline: Pipeline, task_id: int, *, user_id: str, most: int) -> Result:
    """The files that agents wrote for a task, the newest first: rows of `conversation_id` and `path`."""
    return await pipeline.send(_WRITTEN_FOR, owner=user_id, task=str(task_id), most=most)


async def read(result: Result) -> Sequence[Step]:
    return [Step(**row) for row in await result.fetchall()]
