"""Which calls of an answer wait for their person's consent."""

from collections.abc import Sequence

from openai.types.responses import ResponseFunctionToolCall
from sqlalchemy.ext.asyncio import AsyncEngine

from backend.conversation.runs import consents
from backend.tools.consent.policy import Policy, deleted_by
from backend.tools.table import shown
from backend.turn.run import Run
from service.database import pipelined


class Consent:
    """Of one answer: it counts the tasks that its calls delete."""

    def __init__(self, engine: AsyncEngine, run: Run, policy: Policy) -> None:
        self._engine = engine
        self._run = run
        self._policy = policy
        self._deleted = 0

    def reach_of(self, tool: str) -> str | None:
        return self._policy.reach_of(tool)

    def begin_answer(self) -> None:
        self._deleted = 0

    def count(self, tool: str, arguments: str) -> None:
        """A call that is made; one that is refused counts until it is."""
        self._deleted += deleted_by(tool, arguments)

    async def waiting(self, calls: Sequence[ResponseFunctionToolCall]) -> frozenset[str]:
        """The ids of those that wait, which are counted with the others."""
        waiting = [call for call in calls if self._waits(call)]
        return frozenset(call.call_id for call in await self._unallowed(waiting))

    def _waits(self, call: ResponseFunctionToolCall) -> bool:
        self.count(call.name, call.arguments)
        return self._policy.waits(call.name, call.arguments, self._deleted)

    async def _unallowed(self, waiting: Sequence[ResponseFunctionToolCall]) -> Sequence[ResponseFunctionToolCall]:
        """Without those that the person allows in all of this conversation, and whose reach is as it was then."""
        if not any(shown(call.name).asked_with for call in waiting):
            return waiting
        run = self._run
        async with pipelined(self._engine, run.user_id) as pipeline:
            given = await consents.given(pipeline, run.conversation_id, user_id=run.user_id)
        allowed = {(row["tool"], row["reach"]) for row in await given.fetchall()}
        asked = [call for call in waiting if call.name not in run.allowed]
        return [call for call in asked if (call.name, self.reach_of(call.name)) not in allowed]
