"""The assistant's answer: the agent runs on what the conversation holds, and each step is stored before it acts."""

import asyncio
import logging
import time
from collections.abc import Sequence
from contextlib import suppress
from copy import copy
from functools import partial
from typing import Any

from agents import Agent, Model, RunConfig, Runner, RunResultStreaming, ToolExecutionConfig
from agents.exceptions import ModelRefusalError
from agents.run import CallModelData, ModelInputData
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncEngine

from backend.agents.assistant import MAX_STEPS
from backend.conversation import hidden
from backend.conversation.errors import BackendError
from backend.conversation.items import Hidden, Item
from backend.conversation.model_input import budget, history
from backend.conversation.rows import StoredItem
from backend.conversation.store_adapter import PostgresStore
from backend.model.chat_model import ChatModel
from backend.model.retries import telling
from backend.tools.table import READING
from backend.turn import outcomes
from backend.turn.log import Progress
from backend.turn.recorder import Recorder
from backend.turn.speech import Overheard, Speech
from backend.turn.summaries import Summaries
from backend.turn.turns import Turn

logger = logging.getLogger(__name__)

_LONGEST_HOLD = 0.01  # seconds

_STOPPED = {
    "cancelled": "The person stopped this answer. Do not go on with it unless they ask for it.",
    "interrupted": "The server had to end this answer. Check what was done before you go on with it.",
}


async def _tamed(data: CallModelData[Any]) -> ModelInputData:
    """Before each request: nothing that a tool or the model said looks like hidden context."""
    items, paused = list[Any](), time.perf_counter()
    for item in data.model_data.input:
        items.append(hidden.tamed(item))
        if time.perf_counter() - paused > _LONGEST_HOLD:
            await asyncio.sleep(0)  # other people are served meanwhile
            paused = time.perf_counter()
    return ModelInputData(items, data.model_data.instructions)


_RUN_CONFIG = RunConfig(
    tracing_disabled=True,
    tool_not_found_behavior="return_error_to_model",
    # One after the other, in the order in which the model wrote them: five tasks that a person lists are stored in
    # their order, and a list that is read after a change of the same answer shows it.
    tool_execution=ToolExecutionConfig(max_function_tool_concurrency=1),
    call_model_input_filter=_tamed,
)


def _run_config(model: Model) -> RunConfig:
    config = copy(_RUN_CONFIG)  # a new one looks at all its types first, for a millisecond
    config.model = model
    return config


class EmptyAnswer(BackendError):
    """The model gave an empty answer. Try again."""

    allow_retry = True


class Answers:
    """What a turn does: answer the message that was stored when it began, or an earlier one again."""

    def __init__(
        self,
        engine: AsyncEngine,
        store: PostgresStore,
        model: ChatModel,
        agent: Agent[Any],
        *,
        tool_wait_seconds: float,
    ) -> None:
        self._engine = engine
        self._store = store
        self._model = model
        self._summaries = Summaries(store, model)
        self._agent = agent
        self._tool_wait_seconds = tool_wait_seconds

    async def answer_again(self, turn: Turn, message_id: str) -> None:
        """Replace all that follows the message by another answer to it."""
        run = turn.run

        def notes(dropped: Sequence[StoredItem]) -> list[Hidden]:
            attempted = history.abandoned_attempt(dropped, reading=READING)
            return [note for note in (run.now, attempted) if note is not None]

        await self._store.retry_after(run.conversation_id, message_id, notes, run.acting)
        await self.answer(turn)

    async def answer(self, turn: Turn) -> None:
        """Whatever ends it, what was shown is kept and what is open is closed; raises what ended it."""
        speech = Speech(turn.say)
        try:
            await self._answer(turn, speech)
        except asyncio.CancelledError:
            await self._keep(turn, speech.stop())
            raise
        except Exception:
            left = speech.stop()
            await self._keep(turn, left)
            speech.close(left)
            raise

    async def _answer(self, turn: Turn, speech: Speech) -> None:
        run = turn.run
        recent = run.recent or await self._store.history(run.conversation_id, run.acting)
        window = budget.window(recent, tokens=self._model.endpoint.profile.history_tokens)
        if window.left_out is not None:
            count = partial(outcomes.count, self._engine, run)
            turn.afterwards.append(partial(self._summaries.make, run, window.left_out, count=count))
        recorder = Recorder(self._store, run, turn.calls, speech, turn.say, now=run.wall_time)
        telling.set(lambda line: turn.say(Progress(line)))
        stream = Runner.run_streamed(
            self._agent,
            await window.to_model_input(),
            context=turn.calls,
            hooks=recorder,
            max_turns=MAX_STEPS,
            run_config=_run_config(Overheard(self._model, speech.hear)),
        )
        running = asyncio.create_task(_to_its_end(stream))
        turn.on_end.push_async_callback(self._settle, turn, stream, running, recorder)
        await asyncio.wait({running})  # which, unlike the task itself, can be cancelled without ending a tool in flight
        with suppress(ModelRefusalError):  # its words were shown, as any answer's
            await running
        if not speech.text.strip():
            raise EmptyAnswer
        tasks = recorder.final_list(speech.text)
        turn.closing = [*speech.unstored, *([tasks] if tasks else [])]

    async def _keep(self, turn: Turn, left: list[Item]) -> None:
        """Store what was shown of unfinished items and, after a stop, a note that tells the model of it."""
        items = [*left, *([history.note(_STOPPED[turn.stopping])] if turn.stopping else [])]
        if not items:
            return
        try:
            await self._store.write(turn.run.conversation_id, items, turn.run.acting)
        except (BackendError, SQLAlchemyError) as error:
            logger.warning("what was shown in %s could not be kept: %s", turn.run.conversation_id, type(error).__name__)

    async def _settle(
        self, turn: Turn, stream: RunResultStreaming, running: asyncio.Task[None], recorder: Recorder
    ) -> None:
        """End the run: a tool in flight finishes and is recorded, no other call follows."""
        if not running.done():
            stream.cancel("after_turn")
            if recorder.end():
                await asyncio.wait({running}, timeout=self._tool_wait_seconds)
            stream.cancel()
        await asyncio.wait({running})
        if not running.cancelled():
            running.exception()  # a stopped turn has no use for it, and asyncio tells of what nobody looks at
        usage = stream.context_wrapper.usage
        turn.use(
            self._model.endpoint.model,
            requests=usage.requests,
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
        )
        await recorder.finish(stream.new_items)


async def _to_its_end(stream: RunResultStreaming) -> None:
    async for _ in stream.stream_events():
        pass
