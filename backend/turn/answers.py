"""The assistant's answer: the agent runs on what the conversation holds, and each step is stored before it acts."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from copy import copy
from functools import partial
from typing import Any, NamedTuple

from agents import Agent, Model, ModelSettings, RunConfig, ToolExecutionConfig
from agents.run import CallModelData, ModelInputData
from openai.types.responses import ResponseFunctionToolCall
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncEngine

from backend.agents.assistant import MAX_STEPS
from backend.cards.approval_card import NOT_ASKED, in_words, shown_whole, titled
from backend.context import fitting, memory
from backend.context import hidden_context as hidden
from backend.conversation.items import Item, Said
from backend.conversation.model_input import budget, history
from backend.conversation.model_input.budget import Window
from backend.conversation.runs import beside
from backend.conversation.runs.approvals import Approval
from backend.conversation.store_adapter import PostgresStore
from backend.errors import BackendError
from backend.model.chat_model import ChatModel
from backend.model.choices import Choice, check_choice
from backend.model.retries import on_progress
from backend.tools.consent.policy import Policy
from backend.tools.opened import titles_now
from backend.tools.tasks.tools import TaskTools
from backend.turn import inbox
from backend.turn.afterwards.summaries import Summaries
from backend.turn.afterwards.titles import Titles
from backend.turn.choices import chosen_model
from backend.turn.delegated.agents import Agents
from backend.turn.delegated.recorded import with_recorded
from backend.turn.inbox import Steering
from backend.turn.log import Compacted, Progress, Replaced
from backend.turn.recorder import Recorder
from backend.turn.sdk.runs import AgentRuns
from backend.turn.speech import Overheard, Speech
from backend.turn.turn import Turn
from backend.turn.waiting import decisions, resuming
from backend.turn.waiting.consent import Consent
from backend.turn.waiting.resuming import Waited
from service.database import utc_now

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


def _run_config(
    model: Model, temperature: float | None, steering: Steering, window: Window, *, tokens: int
) -> RunConfig:
    config = copy(_RUN_CONFIG)  # a new one looks at all its types first, for a millisecond
    config.model = model
    if temperature is not None:
        config.model_settings = ModelSettings(temperature=temperature)
    head = 0 if window.stand_in is None else 1
    config.call_model_input_filter = partial(_readable, steering=steering, tokens=tokens, head=head)
    return config


class Wanted(NamedTuple):
    """A call that waits for consent; an `agent` that wants to make it works for the assistant's call `of_call`."""

    call: ResponseFunctionToolCall
    agent: str | None = None
    of_call: str | None = None


class EmptyAnswer(BackendError):
    """The model gave an empty answer. Try again."""

    code = "empty_answer"
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

    def choice(self, model: object, temperature: object) -> Choice:
        """What a request asks of the model; raises `InvalidRequest` for what may not be asked."""
        return check_choice(model, temperature, endpoint=self._model.endpoint)

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
        waited = await resuming.load(self._engine, turn.run, self._policy)
        recorder, runs = self._begin(turn, speech)
        recorder.take_up(waited.rows, waited.asked, waited.by_agents)
        if self._agents is not None:
            turn.calls.delegation.take_up(recorder.stopped, waited)
        turn.unmade = ()
        await self._show_changed(turn, waited)
        refused = {one.call["call_id"]: one for one in waited.last if not one.of_call and one.decision == "refused"}
        for call in recorder.stopped:
            if (decision := refused.get(call.call_id)) is not None:
                await recorder.answer(call, decisions.refusal(decision))
        await runs.call(recorder.stopped)  # what was approved, and what agents work for that were asked about calls
        await self._go_on(turn, speech, recorder, runs)

    async def _show_changed(self, turn: Turn, waited: Waited) -> None:
        """The cards of calls that were approved, and are not made as they may reach something else by now."""
        if changed := [decisions.shown(one) for one in waited.last if one.reason == decisions.CHANGED]:
            await self._store.write(turn.run.conversation_id, changed, turn.run.acting)
            for one in changed:
                turn.say(Replaced(one))

    def _begin(self, turn: Turn, speech: Speech) -> tuple[Recorder, AgentRuns]:
        run = turn.run
        consent = Consent(self._engine, run, self._policy)
        recorder = Recorder(self._store, run, turn.calls, speech, turn.say, consent=consent, now=run.wall_time)
        turn.calls.most_steps = MAX_STEPS
        turn.calls.notes = memory.render_memory(turn.memory, tokens=self._tokens).notes
        if self._agents is not None:
            turn.calls.delegation = self._agents.of(turn, recorder)
        on_progress.set(lambda line: turn.say(Progress(line)))
        chosen_model.set(run.choice.model)
        turn.calls.model = model = str(self._model.with_model(run.choice.model).model)
        return recorder, AgentRuns(turn, self._agent, recorder, model=model, tool_wait_seconds=self._tool_wait_seconds)

    async def _go_on(self, turn: Turn, speech: Speech, recorder: Recorder, runs: AgentRuns) -> None:
        """Ask the model until it has answered, or wants calls made that its person is asked about."""
        asked = turn.run.choice
        model = Overheard(self._model.with_model(asked.model), speech.hear)
        while not await self._waits(turn, recorder):
            window = await self._window(turn, begins=recorder.steps == 0)
            steering = Steering(self._engine, turn, recorder.read)
            config = _run_config(model, asked.temperature, steering, window, tokens=self._tokens)
            given, first = await window.to_model_input(), self._titles.first_said(window.rows)
            del window  # its rows are as large as what is sent, and an answer may take minutes
            await runs.ask(given, config, max_turns=MAX_STEPS)
            if not recorder.stopped and not turn.calls.waits_inside:
                self._end(turn, speech, recorder, first)
                return
            # The SDK asks about arguments that it cannot read, too: such a call is made, and the model told of them.
            await runs.call([call for call in recorder.stopped if call.call_id not in turn.calls.waiting])

    def _end(self, turn: Turn, speech: Speech, recorder: Recorder, first: Said | None) -> None:
        if not speech.text.strip():
            raise EmptyAnswer
        if first is not None:
            self._titles.follow(turn, first, answer=speech.text)
        tasks = recorder.final_list(speech.text)
        turn.closing = [*speech.unstored, *([tasks] if tasks else [])]

    async def _waits(self, turn: Turn, recorder: Recorder) -> bool:
        """Whether there are calls that the person is asked about: the assistant's, and its agents'."""
        calls = turn.calls
        for call in recorder.stopped:
            if not shown_whole(call.name, call.arguments):  # nobody consents to what they are not shown
                await recorder.answer(call, NOT_ASKED)
        asking = [Wanted(call) for call in recorder.stopped]
        if calls.waits_inside:
            asking += [Wanted(call, agent.agent, agent.call.call_id) for agent, call in calls.delegation.asks]
        if not asking:
            return False
        turn.asked = await self._asked(turn, recorder, asking)
        recorder.leave(turn.asked)
        if calls.delegation is not None:
            calls.delegation.leave()
        return True

    @property
    def _tokens(self) -> int:
        return self._model.endpoint.profile.history_tokens

    async def _window(self, turn: Turn, *, begins: bool) -> Window:
        """What the model reads: of what was read already, else of what is stored now."""
        run = turn.run
        sent, turn.sent = turn.sent, None
        recent = await (sent.recent() if sent else self._store.history(run.conversation_id, run.acting))
        recent = await with_recorded(self._engine, run, recent)
        window = budget.window(recent, tokens=self._tokens)
        if begins and recent.news is not None:
            turn.say(Compacted(recent.news))
        if window.left_out is not None:
            turn.afterwards.append(partial(self._summaries.make, run.conversation_id, run.acting, window.left_out))
        return window

    async def _asked(self, turn: Turn, recorder: Recorder, asking: Sequence[Wanted]) -> list[Approval]:
        """What the person is asked, in words."""
        numbers = {number for one in asking for number in titled(one.call.arguments)}
        titles = await titles_now(numbers, self._tools, user_id=turn.run.user_id) or {}
        now = utc_now()
        asked: list[Approval] = []
        for position, (call, agent, of_call) in enumerate(asking):
            limits = self._policy.limits_of(call.name)
            text = in_words(call.name, call.arguments, titles, limits, agent=agent)
            asked.append(recorder.approval(call, text, position=position, at=now, agent=agent, of_call=of_call))
        return asked

    async def _keep(self, turn: Turn, left: list[Item]) -> None:
        """Store what was shown of unfinished items and, after a stop, a note that tells the model of it."""
        items = [*left, *([history.note(_STOPPED[turn.stopping])] if turn.stopping else [])]
        if not items:
            return
        try:
            await self._store.write(turn.run.conversation_id, items, turn.run.acting)
        except (BackendError, SQLAlchemyError) as error:
            logger.warning("what was shown in %s could not be kept: %s", turn.run.conversation_id, type(error).__name__)
