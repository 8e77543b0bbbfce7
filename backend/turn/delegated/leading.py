"""How the agents' runs are led: the same for all, and each call of the SDK's finds its turn in its context."""

from collections.abc import AsyncIterator
from typing import Any

from agents import Agent, Model, ModelResponse, RunConfig, RunContextWrapper, RunHooks, Tool, ToolExecutionConfig
from agents.items import TResponseInputItem, TResponseStreamEvent
from agents.run import CallModelData, ModelInputData
from agents.tool_context import ToolContext

from backend.agents.team import Start, Work
from backend.context import fitting
from backend.context import hidden_context as hidden
from backend.model.chat_model import ChatModel
from backend.tools.connectors.connectors import Connectors
from backend.tools.table import shown
from backend.tools.workspace.tools import WorkspaceTools
from backend.turn.calls import CallNotMade, Calls
from backend.turn.choices import chosen_model
from backend.turn.delegated.call import AgentCall
from backend.turn.delegated.delegation import Delegation


def leading(model: ChatModel, workspace: WorkspaceTools, connectors: Connectors) -> Work:
    """For the agents whose tools are those of the workspace, and of other MCP servers."""
    config = RunConfig(
        model=_Chosen(model),
        tracing_disabled=True,
        tool_not_found_behavior="return_error_to_model",
        # In the order in which the model wrote them; in a folder, too, one command runs at a time.
        tool_execution=ToolExecutionConfig(max_function_tool_concurrency=1),
    )
    tokens = model.endpoint.profile.history_tokens
    config.call_model_input_filter = lambda data: _readable(data, tokens)
    return Work(
        hooks=_Hooks(),
        run_config=config,
        carry_out=_carry_out,
        refusal=_refusal,
        waits=_waits,
        offered=lambda: workspace.may_start,
        is_unconfined=lambda: workspace.is_unconfined,
        usable=lambda tool: workspace.runs_commands or not shown(tool).runs_programs,
        reaches_others=connectors.has_any,
        of_others=connectors.tools_for,
    )


class _Chosen(Model):
    """The model of the answer that the agent works for."""

    def __init__(self, model: ChatModel) -> None:
        self._model = model

    def stream_response(self, *args: Any, **kwargs: Any) -> AsyncIterator[TResponseStreamEvent]:
        return self._model.with_model(chosen_model.get()).stream_response(*args, **kwargs)

    async def get_response(self, *args: Any, **kwargs: Any) -> ModelResponse:
        return await self._model.with_model(chosen_model.get()).get_response(*args, **kwargs)

    def get_retry_advice(self, request: Any) -> Any:
        return self._model.get_retry_advice(request)


class _Hooks(RunHooks[Calls]):
    async def on_llm_start(
        self,
        context: RunContextWrapper[Calls],
        agent: Agent[Calls],
        system_prompt: str | None,
        input_items: list[TResponseInputItem],
    ) -> None:
        await _working(context).before_model(input_items)

    async def on_llm_end(self, context: RunContextWrapper[Calls], agent: Agent[Calls], response: ModelResponse) -> None:
        await _working(context).after_model(response, max_tokens=agent.model_settings.max_tokens or 0)

    async def on_tool_start(self, context: RunContextWrapper[Calls], agent: Agent[Calls], tool: Tool) -> None:
        _working(context).begin_call(context.tool_call)  # pyright: ignore[reportAttributeAccessIssue] - a ToolContext

    async def on_tool_end(
        self, context: RunContextWrapper[Calls], agent: Agent[Calls], tool: Tool, result: Any
    ) -> None:
        call = context.tool_call  # pyright: ignore[reportAttributeAccessIssue] - a ToolContext
        await _working(context, ending=True).end_call(call, result)


def _delegation(context: RunContextWrapper[Calls]) -> Delegation:
    delegation = context.context.delegation
    assert isinstance(delegation, Delegation)
    return delegation


def _working(context: RunContextWrapper[Calls], *, ending: bool = False) -> AgentCall:
    """The agent that works now; where the turn is ending, nothing begins, but what is done is written down."""
    delegation = _delegation(context)
    if (delegation.is_ending and not ending) or delegation.current is None or delegation.current.is_over:
        raise CallNotMade
    return delegation.current


async def _carry_out(context: ToolContext[Any], arguments: str, start: Start) -> str:
    return await _delegation(context).carry_out(context, arguments, start)


async def _waits(context: RunContextWrapper[Any], arguments: dict[str, Any], call_id: str) -> bool:
    """Stops the SDK's run before the call; which ones wait was decided when the step was written."""
    return call_id in _working(context).waiting


def _refusal(context: ToolContext[Any]) -> str | None:
    return _working(context).refusal(context.tool_call_id)


async def _readable(data: CallModelData[Any], tokens: int) -> ModelInputData:
    """What the agent's model reads: first what it is asked to do, then all since, and nothing over the window."""
    assert data.context is not None
    agent: AgentCall = data.context.delegation.current
    others = map(hidden.tamed, [*agent.before, *data.model_data.input[1:]])
    items = await agent.meanwhile.with_heard([{"role": "user", "content": hidden.said(agent.opening)}, *others])
    return ModelInputData(fitting.fit(items, tokens=tokens, head=1), data.model_data.instructions)
