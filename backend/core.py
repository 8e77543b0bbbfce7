"""Composes the new core: what executes runs, as long as the process serves."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace

from agents import Agent, ModelSettings

from backend.agents.assistant import create_assistant
from backend.agents.sub_agents import RunSubAgent, create_start_tools, create_sub_agents
from backend.api.chatkit.plain import PlainMessages
from backend.api.chatkit.server import TodoChatKitServer
from backend.api.files.service import FilesService
from backend.api.frontends.service import FrontendService
from backend.api.interactions.reader import ChatReader
from backend.api.interactions.service import InteractionService
from backend.api.services import CoreServices, Services
from backend.cards.service import CardService
from backend.context.summaries import Summaries
from backend.context.titles import Titles
from backend.conversations.limits import Limits
from backend.conversations.runs import ASSISTANT, SIGNAL
from backend.model.chat_model import ChatModel
from backend.runs.admission import AdmissionControl
from backend.runs.approvals import Approvals
from backend.runs.execution import Dependencies
from backend.runs.executor import Executor
from backend.runs.live_run import RunContext
from backend.runs.process_lease import SWEEP_SECONDS, Sweeper
from backend.runs.service import RunService
from backend.runs.stream import CHANGED, FOLLOWED, Streams
from backend.settings import SHUTDOWN_SECONDS, Settings
from backend.tools.consent.policy import Policy
from common.database import ProcessConnection, run_sweeps


@asynccontextmanager
async def open_core(
    settings: Settings, services: Services, policy: Policy, *, dead_after_seconds: float = 10.0
) -> AsyncIterator[CoreServices]:
    database, model, tools = services.database, services.model, services.tools
    streams = Streams(database)
    agents: dict[str, Agent[RunContext]] = {}  # filled below, as the assistant's tools need the executor
    summaries = Summaries(database, model, _limits(settings))
    executor = Executor(
        Dependencies(
            database,
            agents,
            model.endpoint.profile.history_tokens,
            Approvals(database, policy, tools),
            services.workspace,
            settings.tool_wait_seconds,
            settings.agent_model_turns,
        ),
        streams,
        summaries,
        Titles(database, model),
        run_seconds=settings.limit_run_seconds,
        sub_agents_per_day=settings.limit_agent_runs,
    )
    agents |= _create_agents(settings, services, policy, executor.run_sub_agent)

    async def signal_all() -> None:
        executor.signal_all()

    connection = ProcessConnection(
        settings.process_database_url,
        database,
        channels={SIGNAL: executor.signal, CHANGED: streams.wake, FOLLOWED: streams.add_follower},
        on_connect=signal_all,
        dead_after_seconds=dead_after_seconds,
    )
    admission = AdmissionControl(settings.limit_runs_at_once, settings.limit_lag_seconds)
    sweeper = Sweeper(database, connection, executor)
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(connection)
        await stack.enter_async_context(run_sweeps(sweeper.sweep, every_seconds=SWEEP_SECONDS))
        for work in (executor.store_growth(), admission.watch()):
            stack.callback(asyncio.create_task(work).cancel)
        stack.push_async_callback(executor.shut_down, SHUTDOWN_SECONDS)
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
            FilesService(database, files, _limits(settings)),
        )


def _create_agents(
    settings: Settings, services: Services, policy: Policy, run_sub_agent: RunSubAgent
) -> dict[str, Agent[RunContext]]:
    """The assistant, and those that work for it where there is a workspace for them."""
    model, tools, workspace, connectors = services.model, services.tools, services.workspace, services.connectors
    sent: ModelSettings = model.settings(temperature=settings.llm_temperature, max_tokens=settings.llm_max_tokens)
    if workspace is None:
        return {ASSISTANT: create_assistant(model, sent, [tools], may_ask=policy.may_ask)}

    def has_agents() -> bool:
        return workspace.may_start

    start_tools = create_start_tools(run_sub_agent, is_enabled=has_agents, connectors=connectors)
    assistant = create_assistant(model, sent, [tools], may_ask=policy.may_ask, team=start_tools, has_agents=has_agents)
    by_sub_agents = replace(sent, max_tokens=model.endpoint.agent_max_tokens)
    others = create_sub_agents(model, by_sub_agents, workspace=workspace, tasks=tools, connectors=connectors)
    return {ASSISTANT: assistant, **others}


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
        per_minute=settings.limit_runs_per_minute,
        running=settings.limit_running_runs,
        per_day=settings.limit_runs_per_day,
        conversations=settings.limit_conversations,
    )
