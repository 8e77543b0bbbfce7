"""The assistant's answer: the agent runs on what the conversation holds, and each step is stored before it acts."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from typing import Any

from agents import Agent, Model, RunConfig, ToolExecutionConfig
from agents.run import CallModelData, ModelInputData
from openai.types.responses import ResponseFunctionToolCall
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncEngine

from backend.agents.assistant import MAX_STEPS
from backend.conversation import hidden
from backend.conversation.errors import BackendError
from backend.conversation.items import Item
from backend.conversation.model_input import budget, fitting, history
from backend.conversation.model_input.budget import Window
from backend.conversation.reading import Recent
from backend.conversation.runs import beside
from backend.conversation.runs.approvals import Approval, of_last_step
from backend.conversation.store_adapter import PostgresStore
from backend.model.chat_model import ChatModel
from backend.model.retries import telling
from backend.tools.consent.card import in_words, titled
from backend.tools.consent.policy import Policy
from backend.tools.opened import titles_now
from backend.tools.task_tools import TaskTools
from backend.turn import inbox
from backend.turn.afterwards.summaries import Summaries
from backend.turn.afterwards.titles import Titles
from backend.turn.delegated.agents import Agents
from backend.turn.delegated.recorded import with_recorded
from backend.turn.inbox import Steering
from backend.turn.log import Compacted, Progress
from backend.turn.recorder import Recorder
from backend.turn.sdk.runs import AgentRuns
from backend.turn.speech import Overheard, Speech
from backend.turn.turn import Turn
from backend.turn.waiting import decisions, resuming

logger = logging.getLogger(__name__)

_LONGEST_HOLD = 0.01  # seconds

_STOPPED = {
    "cancelled": "The person stopped this answer. Do not go on with it unless they ask for it.",
    "interrupted": "The server had to end this answer. Check what was done before you go on with it.",
}


async def _readable(data: CallModelData[Any], steering: Steering, *, tokens: int, head: int) -> ModelInputData:
    """Before each request: what was said meanwhile is in it, and nothing is over the window.

    Nothing that a tool or the model said looks like hidden context.
    """
    items, paused = list[Any](), time.perf_counter()
    for item in await steering.steered(data.model_data.input):
        items.append(hidden.tamed(item))
        if time.perf_counter() - paused > _LONGEST_HOLD:
            await asyncio.sleep(0)  # other people are served meanwhile
            paused = time.perf_counter()
    return ModelInputData(fitting.fit(items, tokens=tokens, head=head), data.model_data.instructions)


_RUN_CONFIG = RunConfig(
    tracing_disabled=True,
    tool_not_found_behavior="return_error_to_model",
    # One after the other, in the order in which the model wrote them: five tasks that a person lists are stored in
    # their order, and a list that is read after a change of the same answer shows it.
    tool_execution=ToolExecutionConfig(max_function_tool_concurrency=1),
)


def _run_config(model: Model, steering: Steering, window: Window, *, tokens: int) -> RunConfig:
    config = copy(_RUN_CONFIG)  # a new one looks at all its types first, for a millisecond
    config.model = model
    head = 0 if window.stand_in is None else 1
    config.call_model_input_filter = partial(_readable, steering=steering, tokens=tokens, head=head)
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
        summaries: Summaries,
        titles: Titles,
        agent: Agent[Any],
        tools: TaskTools,
        *,
        policy: Policy,
        tool_wait_seconds: float,
        agents: Agents | None = None,
    ) -> None:
        """`policy` says what is asked before it is done, and the agent's tools were made with it.

        `agents` are those that may work for it, if there are any.
        """
        self._engine = engine
        self._store = store
        self._model = model
        self._summaries = summaries
        self._titles = titles
        self._agent = agent
        self._tools = tools
        self._policy = policy
        self._tool_wait_seconds = tool_wait_seconds
        self._agents = agents

    async def answer(self, turn: Turn) -> None:
        """Whatever ends it, what was shown is kept and what is open is closed; raises what ended it."""
        turn.go_on = self._answer_next
        if turn.run.instead_of is not None and turn.run.said is None:
            await self._begin_at(turn, turn.run.instead_of)
        await self._shown(turn, self._answer)

    async def resume(self, turn: Turn) -> None:
        """Go on with a run that waited, once all that it asked is decided; as `answer`."""
        turn.go_on, turn.has_news = self._answer_next, True
        await self._shown(turn, self._resume)

    async def _answer_next(self, turn: Turn) -> None:
        """Answer what was said meanwhile, if it was not taken back, with as many steps as any message has.

        What this answer changes is taken back without what the one before it changed.
        """
        turn.run = replace(turn.run, recent=None)
        if said := await inbox.take(self._engine, turn, at_end=True):
            turn.calls.batch, turn.calls.steps = said[-1].id, 0
            await self._shown(turn, self._answer)

    async def _begin_at(self, turn: Turn, message_id: str) -> None:
        """Let the calls' keys be those that they had when the message was read in the middle of a run."""
        run = turn.run
        began = await beside.of_message(self._engine, run.conversation_id, message_id, user_id=run.user_id)
        turn.calls.go_on_from(began)

    async def _shown(self, turn: Turn, work: Callable[[Turn, Speech], Awaitable[None]]) -> None:
        speech = Speech(turn.say)
        try:
            await work(turn, speech)
        except (asyncio.CancelledError, Exception):
            left = speech.stop()
            await self._keep(turn, left)
            speech.close(left)
            raise

    async def _answer(self, turn: Turn, speech: Speech) -> None:
        recorder, runs = self._begin(turn, speech)
        await self._go_on(turn, speech, recorder, runs)

    async def _resume(self, turn: Turn, speech: Speech) -> None:
        if turn.run.message_id is not None:
            await self._begin_at(turn, turn.run.message_id)
        steps, asked, by_agents = await resuming.load(self._engine, turn.run)
        recorder, runs = self._begin(turn, speech)
        recorder.take_up(steps, asked, by_agents)
        turn.closing = []
        decided = {one.call["call_id"]: one for one in of_last_step(asked)}
        approved: list[ResponseFunctionToolCall] = []
        for call in recorder.stopped:
            if (decision := decided[call.call_id]).decision == "approved":
                approved.append(call)
            else:
                await recorder.answer(call, decisions.refusal(decision))
        await runs.call(approved)
        await self._go_on(turn, speech, recorder, runs)

    def _begin(self, turn: Turn, speech: Speech) -> tuple[Recorder, AgentRuns]:
        run = turn.run
        recorder = Recorder(self._store, run, turn.calls, speech, turn.say, policy=self._policy, now=run.wall_time)
        turn.calls.most_steps = MAX_STEPS
        if self._agents is not None:
            turn.calls.delegation = self._agents.of(turn, recorder)
        telling.set(lambda line: turn.say(Progress(line)))
        model = self._model.endpoint.model
        return recorder, AgentRuns(turn, self._agent, recorder, model=model, tool_wait_seconds=self._tool_wait_seconds)

    async def _go_on(self, turn: Turn, speech: Speech, recorder: Recorder, runs: AgentRuns) -> None:
        """Ask the model until it has answered, or wants calls made that its person is asked about."""
        recent = turn.run.recent
        while True:
            window = await self._window(turn, recent, begins=recorder.steps == 0)
            steering = Steering(self._engine, turn, recorder.read)
            config = _run_config(Overheard(self._model, speech.hear), steering, window, tokens=self._tokens)
            await runs.ask(await window.to_model_input(), config, max_turns=MAX_STEPS)
            if not (stopped := recorder.stopped):
                break
            # The SDK asks about arguments that it cannot read, too: such a call is made, and the model told of them.
            await runs.call([call for call in stopped if call.call_id not in turn.calls.waiting])
            if waiting := recorder.stopped:
                turn.asked = await self._asked(turn, recorder, waiting)
                recorder.leave(turn.asked)
                return
            recent = None
        if not speech.text.strip():
            raise EmptyAnswer
        self._titles.follow(turn, window.rows, answer=speech.text)
        tasks = recorder.final_list(speech.text)
        turn.closing = [*speech.unstored, *([tasks] if tasks else [])]

    @property
    def _tokens(self) -> int:
        return self._model.endpoint.profile.history_tokens

    async def _window(self, turn: Turn, recent: Recent | None, *, begins: bool) -> Window:
        """What the model reads: of what was read already, else of what is stored now."""
        run = turn.run
        recent = recent or await self._store.history(run.conversation_id, run.acting)
        recent = await with_recorded(self._engine, run, recent)
        window = budget.window(recent, tokens=self._tokens)
        if begins and recent.news is not None:
            turn.say(Compacted(recent.news))
        if window.left_out is not None:
            turn.afterwards.append(partial(self._summaries.make, run.conversation_id, run.acting, window.left_out))
        return window

    async def _asked(
        self, turn: Turn, recorder: Recorder, waiting: Sequence[ResponseFunctionToolCall]
    ) -> list[Approval]:
        """What the person is asked, in words."""
        numbers = {number for call in waiting for number in titled(call.arguments)}
        titles = await titles_now(numbers, self._tools, user_id=turn.run.user_id) or {}
        limits = self._policy.limits
        words = [in_words(call.name, call.arguments, titles, limits.get(call.name)) for call in waiting]
        return [recorder.approval(call, text) for call, text in zip(waiting, words, strict=True)]

    async def _keep(self, turn: Turn, left: list[Item]) -> None:
        """Store what was shown of unfinished items and, after a stop, a note that tells the model of it."""
        items = [*left, *([history.note(_STOPPED[turn.stopping])] if turn.stopping else [])]
        if not items:
            return
        try:
            await self._store.write(turn.run.conversation_id, items, turn.run.acting)
        except (BackendError, SQLAlchemyError) as error:
            logger.warning("what was shown in %s could not be kept: %s", turn.run.conversation_id, type(error).__name__)
