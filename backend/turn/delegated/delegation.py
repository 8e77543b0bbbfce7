"""The agents of one answer: started by the assistant's calls, one after the other, and ended with it."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from agents.exceptions import MaxTurnsExceeded, ModelBehaviorError, ModelRefusalError
from agents.tool_context import ToolContext
from openai.types.responses import ResponseFunctionToolCall
from pydantic import ValidationError

from backend.agents.team import Delegated, Start
from backend.conversation.agents.steps import count
from backend.conversation.runs.approvals import Approval
from backend.errors import LeaseLost
from backend.tools.consent.policy import arguments_of
from backend.tools.table import shown
from backend.turn.delegated.call import AgentCall, Means, OutOfSteps
from backend.turn.delegated.transcript import Transcript, of_call, recorded
from backend.turn.delegated.working import WAITS, lead
from backend.turn.lifecycle.endings import sentence_of
from backend.turn.waiting.resuming import Waited
from service.database import pipelined

_CALL_SECONDS = 0.7  # for a call to end that is stopped
_HEARD = "\n\nIt has read what the person wrote while it worked."
_UNREADABLE = "The call was not made: its arguments need task, a text, and task_id, a number or null."
_OVER_LIMIT = (
    "The call was not made: this person has started agents {most} times in a day, which is the most. Tell them, and do "
    "what you can without one."
)


class Delegation:
    """`answer` records what is said in place of the output of a call, and `hold` that a call has none yet."""

    def __init__(
        self,
        means: Means,
        answer: Callable[[ResponseFunctionToolCall, str], Awaitable[None]],
        hold: Callable[[str], None],
        *,
        per_day: int | None,
    ) -> None:
        self._means = means
        self._answer = answer
        self._hold = hold
        self._per_day = per_day
        self._ending = False
        self._carrying: asyncio.Task[Any] | None = None
        self._stopping: asyncio.Task[None] | None = None
        # By the assistant's call: those that are to go on, and what was decided of their calls.
        self._waited: dict[str, tuple[AgentCall, Mapping[str, Approval]]] = {}
        self._waiting: list[AgentCall] = []
        self.current: AgentCall | None = None

    def stop(self) -> None:
        """End the agent that works now; no other begins."""
        self._ending = True
        if (carried := self._carrying) is None:
            return
        if self.current is not None and self.current.is_calling:
            self._stopping = asyncio.create_task(self._end_call(self.current, carried))
        else:
            carried.cancel()

    async def _end_call(self, agent: AgentCall, carried: asyncio.Task[Any]) -> None:
        """Let the call under way answer with what it has so far; one that does not is cut off."""
        run = self._means.run
        with suppress(TimeoutError):
            async with asyncio.timeout(_CALL_SECONDS):
                while agent.is_calling and not carried.done():
                    await self._means.tools.stop(agent.folder, user_id=run.user_id)
                    await asyncio.wait({carried}, timeout=0.05)
        carried.cancel()

    @property
    def is_ending(self) -> bool:
        return self._ending

    # Those that wait

    @property
    def asks(self) -> list[tuple[AgentCall, ResponseFunctionToolCall]]:
        """The calls that agents' work waits for, in their order."""
        return [(agent, call) for agent in self._waiting for call in agent.did.stopped]

    def leave(self) -> None:
        """They wait from here on, and this answer knows of them no more."""
        self._waiting = []

    def take_up(self, calls: Sequence[ResponseFunctionToolCall], waited: Waited) -> None:
        """Let the agents that waited for those of these calls of the assistant's go on, once these are made."""
        for call in calls:
            if own := [one for one in waited.last if one.of_call == call.call_id]:
                steps = of_call(waited.by_agents, call.call_id)
                did = recorded(steps, waited.works, self._means.folder_url)
                key, opening = self._means.calls.call_keys[call.call_id], steps[0].content["opening"]
                agent = AgentCall(self._means, call, key, opening, did, goes_on=True)
                self._waited[call.call_id] = agent, {one.call["call_id"]: one for one in own}

    async def finish(self) -> None:
        """The answer ends: those that wait, or were to go on, have ended with it."""
        left = [*self._waiting, *(agent for agent, _ in self._waited.values())]
        self._waiting, self._waited = [], {}
        for agent in left:
            await agent.close()
            text = agent.did.told(f"The {agent.agent} was stopped. What it did before:\n{agent.did.so_far()}")
            await agent.end("stopped", text)
            await self._answer(agent.call, text)

    # The work

    async def carry_out(self, context: ToolContext[Any], arguments: str, start: Start) -> str:
        """Let the agent work; returns what the assistant's model reads of it. Raises what ends the turn.

        Where it waits for its person, the assistant's call has no output, whatever is returned.
        """
        call = context.tool_call
        assert isinstance(call, ResponseFunctionToolCall)
        given = _read(arguments)
        if given is None:
            return _UNREADABLE
        agent, decided = self._waited.pop(call.call_id, (None, {}))
        if agent is None:
            if not await self._may_begin():
                return _OVER_LIMIT.format(most=self._per_day)
            agent = self._new(call, given)
            await agent.begin(given.model_dump())
        self.current = agent
        try:
            if not decided:
                await self._give_uploads(agent)
            outcome, text = await self._work(agent, lead(agent, context, given, start, decided))
        except Exception as error:
            await agent.close()
            did = agent.did.so_far()
            text = f"The {agent.agent} could not finish. {sentence_of(error)[0]} What it did before:\n{did}"
            await agent.end("failed", text)
            await self._answer(call, text)
            raise
        finally:
            self._means.calls.by_agent[agent.agent].update(agent.usage)
        if outcome == WAITS:
            agent.pause()
            self._waiting.append(agent)
            self._hold(call.call_id)
            return text
        await agent.close()
        output = agent.did.told(f"{text}{_HEARD if agent.meanwhile.has_heard else ''}")
        await agent.end(outcome, output)
        return output

    def _new(self, call: ResponseFunctionToolCall, given: Delegated) -> AgentCall:
        calls, name = self._means.calls, shown(call.name).agent
        assert name is not None
        did = Transcript(name, self._means.folder_url)
        return AgentCall(self._means, call, calls.call_keys[call.call_id], _opening(given, calls.asked), did)

    async def _work(self, agent: AgentCall, work: Coroutine[Any, Any, tuple[str, str]]) -> tuple[str, str]:
        """How it ended, and what is told of it; raises what ends the turn."""
        carried = self._carrying = asyncio.ensure_future(work)
        if self._ending:
            carried.cancel()
        try:
            await asyncio.wait({carried})
        except asyncio.CancelledError:  # the turn's last resort
            self._ending = True
            carried.cancel()
            await asyncio.wait({carried})
        self._carrying = None
        if self._ending:
            if not carried.cancelled():
                carried.exception()  # of the end itself
            return "stopped", f"The {agent.agent} was stopped. What it did before:\n{agent.did.so_far()}"
        if (error := carried.exception()) is None:
            return carried.result()
        causes = [*_chain(error)]
        if any(isinstance(one, OutOfSteps | MaxTurnsExceeded) for one in causes):
            most = self._means.calls.most_steps
            told = f"The {agent.agent} was ended: a message has {most} model steps, and they are used up."
            return "out of steps", f"{told} It did not finish. What it did:\n{agent.did.so_far()}"
        if any(isinstance(one, ModelRefusalError) for one in causes):
            return "declined", f"The {agent.agent}'s model declined to do this."
        if not agent.has_begun and any(isinstance(one, ModelBehaviorError) for one in causes):
            return "failed", _UNREADABLE
        raise error

    async def _give_uploads(self, agent: AgentCall) -> None:
        """Who works apart has copies of what the person put in, and nothing that others wrote."""
        run = self._means.run
        if agent.folder != run.conversation_id:
            await self._means.tools.give_uploads(run.conversation_id, agent.folder, user_id=run.user_id)

    async def _may_begin(self) -> bool:
        """Count it, unless the person had too many; raises `LeaseLost`."""
        run = self._means.run
        async with pipelined(self._means.engine, run.user_id) as pipeline:
            counted = await count(pipeline, run.id, user_id=run.user_id, per_day=self._per_day)
        if await counted.fetchone() is not None:
            return True
        if self._per_day is None:
            raise LeaseLost
        return False


def _read(arguments: str) -> Delegated | None:
    try:
        given = Delegated.model_validate(arguments_of(arguments))
    except ValidationError:
        return None
    return given if given.task.strip() else None


def _opening(given: Delegated, asked: str) -> str:
    """What the agent reads first."""
    number = f" (task {given.task_id} of the person's list)" if given.task_id is not None else ""
    said = json.dumps(asked, ensure_ascii=False)
    wrote = f"\n\nThe person's own message, to which this belongs: {said}" if asked else ""
    return f"Your work{number}: {given.task}{wrote}"


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
