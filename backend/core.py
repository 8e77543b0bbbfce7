"""Composes the new core: what executes runs, as long as the process serves."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

from agents import Agent, ModelSettings
from agents.mcp import MCPServer

from backend.agents.assistant import create_assistant
from backend.api.chatkit.plain import PlainMessages
from backend.api.chatkit.server import TodoChatKitServer
from backend.api.frontends.service import FrontendService
from backend.api.interactions.reader import ChatReader
from backend.api.interactions.service import InteractionService
from backend.api.services import CoreServices, Services
from backend.cards.approval_card import in_words, titled
from backend.cards.service import CardService
from backend.context.summaries import Summaries
from backend.context.titles import Titles
from backend.conversations.limits import Limits
from backend.conversations.records import Run, ToolCall
from backend.conversations.runs import SIGNAL
from backend.model.chat_model import ChatModel
from backend.runs.admission import AdmissionControl
from backend.runs.execution import Dependencies
from backend.runs.executor import Executor
from backend.runs.live_run import RunContext
from backend.runs.process_lease import SWEEP_SECONDS, Sweeper
from backend.runs.service import RunService
from backend.runs.stream import CHANGED, FOLLOWED, Streams
from backend.settings import Settings
from backend.tools.consent.policy import Policy, deleted_by
from backend.tools.opened import titles_now
from backend.tools.tasks.tools import TaskTools
from common.database import ProcessConnection, run_sweeps


@asynccontextmanager
async def open_core(
    settings: Settings, services: Services, policy: Policy, *, dead_after_seconds: float = 10.0
) -> AsyncIterator[CoreServices]:
    database, model, tools = services.database, services.model, services.tools
    streams = Streams(database)
    approvals = _Approvals(policy, tools)
    summaries = Summaries(database, model, _limits(settings))
    executor = Executor(
        Dependencies(
            database,
            {"assistant": _create_assistant(settings, model, [tools], policy)},
            model.endpoint.profile.history_tokens,
            approvals.find_waiting,
            approvals.describe,
            settings.tool_wait_seconds,
        ),
        streams,
        summaries,
        Titles(database, model),
        run_seconds=settings.limit_turn_seconds,
    )

    async def signal_all() -> None:
        executor.signal_all()

    connection = ProcessConnection(
        settings.process_database_url,
        database,
        channels={SIGNAL: executor.signal, CHANGED: streams.wake, FOLLOWED: streams.add_follower},
        on_connect=signal_all,
        dead_after_seconds=dead_after_seconds,
    )
    admission = AdmissionControl(settings.limit_turns_at_once, settings.limit_lag_seconds)
    sweeper = Sweeper(database, connection, executor)
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(connection)
        await stack.enter_async_context(run_sweeps(sweeper.sweep, every_seconds=SWEEP_SECONDS))
        for work in (executor.store_growth(), admission.watch()):
            stack.callback(asyncio.create_task(work).cancel)
        stack.push_async_callback(executor.shut_down)
        runs = RunService(
            database,
            executor,
            streams,
            connection,
            _limits(settings),
            admission,
            settings.clock(),
            settings.time_zone,
        )
        cards = CardService(database, tools, settings.clock(), settings.time_zone)
        stack.push_async_callback(cards.close)
        files = services.folder_files
        chars = settings.limit_message_chars
        interactions = _create_interactions(settings, model, runs, summaries)
        yield CoreServices(
            database,
            runs,
            interactions,
            FrontendService(interactions),
            cards,
            TodoChatKitServer(runs, cards, files, model.endpoint, message_chars=chars, backend_url=settings.address),
            PlainMessages(runs, chars),
        )


class _Approvals:
    """Which calls wait for approval, and in which words."""

    def __init__(self, policy: Policy, tools: TaskTools) -> None:
        self._policy, self._tools = policy, tools

    def find_waiting(self, run: Run, calls: Sequence[ToolCall], earlier: Sequence[ToolCall]) -> set[str]:
        waiting = set[str]()
        deleted = sum(deleted_by(call.tool, call.arguments) for call in earlier if call.state != "rejected")
        for call in calls:
            deleted += deleted_by(call.tool, call.arguments)
            if self._policy.waits(call.tool, call.arguments, deleted=deleted):
                waiting.add(call.id)
        return waiting

    async def describe(self, run: Run, call: ToolCall) -> str:
        titles = await titles_now(set(titled(call.arguments)), self._tools, user_id=run.user_id) or {}
        return in_words(call.tool, call.arguments, titles, self._policy.limits_of(call.tool), agent=None)


def _create_assistant(
    settings: Settings, model: ChatModel, tools: Sequence[MCPServer], policy: Policy
) -> Agent[RunContext]:
    sent: ModelSettings = model.settings(temperature=settings.llm_temperature, max_tokens=settings.llm_max_tokens)
    return create_assistant(model, sent, tools, may_ask=policy.may_ask)


def _create_interactions(
    settings: Settings, model: ChatModel, runs: RunService, summaries: Summaries
) -> InteractionService:
    return InteractionService(
        runs,
        ChatReader(runs.database, model.messages, model.endpoint.profile.history_tokens),
        summaries,
        model.endpoint,
        settings.limit_message_chars,
    )


def _limits(settings: Settings) -> Limits:
    return Limits(
        per_minute=settings.limit_turns_per_minute,
        running=settings.limit_running_turns,
        per_day=settings.limit_turns_per_day,
        conversations=settings.limit_conversations,
    )
