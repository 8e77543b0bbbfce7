"""The SDK's runs of one turn, one after the other, and the calls that it did not make."""

import asyncio
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from typing import Any

from agents import Agent, RunConfig, RunContextWrapper, Runner, RunResultStreaming
from agents.exceptions import ModelRefusalError
from openai.types.responses import ResponseFunctionToolCall

from backend.turn.calls import Calls
from backend.turn.recorder import Recorder
from backend.turn.sdk.calls import make_each
from backend.turn.turn import Turn


class AgentRuns:
    """Whatever ends the turn, what is under way is ended in order: a tool in flight finishes, and is recorded."""

    def __init__(
        self, turn: Turn, agent: Agent[Any], recorder: Recorder, *, model: str, tool_wait_seconds: float
    ) -> None:
        """`model` is the name that what was used is counted under."""
        self._turn = turn
        self._agent = agent
        self._recorder = recorder
        self._model = model
        self._tool_wait_seconds = tool_wait_seconds
        self._stream: RunResultStreaming | None = None
        self._running: asyncio.Task[None] | None = None
        turn.on_end.push_async_callback(self._end)

    async def ask(self, given: list[Any], config: RunConfig, *, max_turns: int) -> None:
        """Run the agent until it has answered, or wants a call made that the SDK does not make."""
        stream = Runner.run_streamed(
            self._agent,
            given,
            context=self._turn.calls,
            hooks=self._recorder,
            max_turns=max_turns,
            run_config=config,
        )
        await self._carry_out(_to_its_end(stream), stream)

    async def call(self, calls: Sequence[ResponseFunctionToolCall]) -> None:
        """Make these calls, one after the other."""
        if calls:
            await self._carry_out(self._call(calls))

    async def _carry_out(self, work: Coroutine[Any, Any, None], stream: RunResultStreaming | None = None) -> None:
        self._stream = stream
        self._running = asyncio.create_task(work)
        await asyncio.wait({self._running})  # which, unlike the task itself, can be cancelled: a tool in flight goes on
        with suppress(ModelRefusalError):  # its words were shown, as any answer's
            await self._running
        await self._settle()

    async def _call(self, calls: Sequence[ResponseFunctionToolCall]) -> None:
        context = RunContextWrapper[Calls](context=self._turn.calls)
        try:
            await make_each(calls, self._agent, context, self._recorder, self._recorder.answer)
        finally:
            if context.usage.requests:  # by agents
                self._count(context)

    async def _settle(self) -> None:
        """Count what was used, and record what the SDK itself has answered."""
        stream, self._stream, self._running = self._stream, None, None
        if stream is None:
            return
        self._count(stream.context_wrapper)
        answered = stream.new_items
        # It holds itself by a function of its own, and with that all of the answer: nobody reads it any more.
        vars(stream).clear()
        await self._recorder.take(answered)

    def _count(self, context: RunContextWrapper[Calls]) -> None:
        usage = context.usage
        thought = usage.output_tokens_details.reasoning_tokens
        self._turn.use(
            self._model,
            self._turn.calls.take_by_agent(),
            requests=usage.requests,
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            **({"reasoning_tokens": thought} if thought else {}),
        )

    async def _end(self) -> None:
        """A tool in flight finishes and is recorded, no other call follows."""
        running, stream = self._running, self._stream
        if running is not None:
            if not running.done():
                await self._stop(running, stream)
            if not running.cancelled():
                running.exception()  # a stopped turn has no use for it, and asyncio tells of what nobody looks at
            await self._settle()
        try:
            if self._turn.calls.delegation is not None:
                await self._turn.calls.delegation.finish()
        finally:
            await self._recorder.finish()

    async def _stop(self, running: asyncio.Task[None], stream: RunResultStreaming | None) -> None:
        if stream is not None:
            stream.cancel("after_turn")
        if self._turn.calls.delegation is not None:
            self._turn.calls.delegation.stop()
        if self._recorder.end():
            await asyncio.wait({running}, timeout=self._tool_wait_seconds)
        if stream is not None:
            stream.cancel()
        else:
            running.cancel()
        await asyncio.wait({running})


async def _to_its_end(stream: RunResultStreaming) -> None:
    async for _ in stream.stream_events():
        pass
