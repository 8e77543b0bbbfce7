"""The agents of one answer: started by the assistant's calls, one after the other, and ended with it."""

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

from agents.exceptions import MaxTurnsExceeded, ModelBehaviorError, ModelRefusalError
from agents.tool_context import ToolContext
from openai.types.responses import ResponseFunctionToolCall
from pydantic import ValidationError

from backend.agents.team import Delegated, Invoke
from backend.conversation.agents import steps
from backend.conversation.errors import LeaseLost
from backend.tools.consent.policy import arguments_of
from backend.tools.table import shown
from backend.turn.delegated.call import AgentCall, Means, OutOfSteps
from backend.turn.lifecycle.endings import sentence_of
from service.database import pipelined

_CALL_SECONDS = 0.7  # for a call to end that is stopped
_LONGEST = 8_192  # bytes of what the assistant's model reads
_UNREADABLE = "The call was not made: its arguments need task, a text, and task_id, a number or null."
_OVER_LIMIT = (
    "The call was not made: this person has started agents {most} times in a day, which is the most. Tell them, and do "
    "what you can without one."
)


class Delegation:
    """`answer` records what is said in place of the output of a call that ends the turn."""

    def __init__(
        self, means: Means, answer: Callable[[ResponseFunctionToolCall, str], Any], *, per_day: int | None
    ) -> None:
        self._means = means
        self._answer = answer
        self._per_day = per_day
        self._ending = False
        self._carrying: asyncio.Task[Any] | None = None
        self._stopping: asyncio.Task[None] | None = None
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

    async def carry_out(self, context: ToolContext[Any], arguments: str, invoke: Invoke) -> str:
        """Let the agent work; returns what the assistant's model reads of it. Raises what ends the turn."""
        given = _read(arguments)
        call, name = context.tool_call, shown(context.tool_name).agent
        assert isinstance(call, ResponseFunctionToolCall)
        assert name is not None
        if given is None:
            return _UNREADABLE
        if not await self._may_begin():
            return _OVER_LIMIT.format(most=self._per_day)
        calls = self._means.calls
        self.current = agent = AgentCall(
            self._means, name, call, calls.call_keys[call.call_id], _opening(given, calls.asked)
        )
        await agent.begin(given.model_dump())
        try:
            outcome, text = await self._work(agent, invoke(context, given.model_dump_json()))
        except Exception as error:
            await agent.close()
            text = f"The {name} could not finish. {sentence_of(error)[0]} What it did before:\n{agent.so_far()}"
            await agent.end("failed", text)
            await self._answer(call, text)
            raise
        finally:
            calls.by_agent[name].update(agent.usage)
        await agent.close()
        output = _shortened(text, _changed(agent))
        await agent.end(outcome, output)
        return output

    async def _work(self, agent: AgentCall, work: Any) -> tuple[str, str]:
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
            return "stopped", f"The {agent.agent} was stopped. What it did before:\n{agent.so_far()}"
        if (error := carried.exception()) is None:
            return "completed", str(carried.result() or "").strip() or f"The {agent.agent} gave no answer."
        causes = [*_chain(error)]
        if any(isinstance(one, OutOfSteps | MaxTurnsExceeded) for one in causes):
            most = self._means.calls.most_steps
            told = f"The {agent.agent} was ended: a message has {most} model steps, and they are used up."
            return "out of steps", f"{told} It did not finish. What it did:\n{agent.so_far()}"
        if any(isinstance(one, ModelRefusalError) for one in causes):
            return "declined", f"The {agent.agent}'s model declined to do this."
        if not agent.has_begun and any(isinstance(one, ModelBehaviorError) for one in causes):
            return "failed", _UNREADABLE
        raise error

    async def _may_begin(self) -> bool:
        """Count it, unless the person had too many; raises `LeaseLost`."""
        run = self._means.run
        async with pipelined(self._means.engine, run.user_id) as pipeline:
            counted = await steps.count(pipeline, run.id, user_id=run.user_id, per_day=self._per_day)
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


def _changed(agent: AgentCall) -> str:
    if not agent.files:
        return "Files changed: none."
    sizes = {path: f" ({size:,} bytes)" if isinstance(size, int) else "" for path, size in agent.files.items()}
    listed = "\n".join(f"- {path}{size}" for path, size in sizes.items())
    return f"Files changed:\n{listed}" if len(listed) < _LONGEST // 4 else f"Files changed: {len(sizes)}."


def _shortened(text: str, files: str) -> str:
    """As much of the text as there is room for, and the files."""
    room = _LONGEST - len(files.encode()) - 8
    given = text.encode()
    shown = text if len(given) <= room else given[:room].decode(errors="ignore") + " …"
    return f"{shown}\n\n{files}"


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
