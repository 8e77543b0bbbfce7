"""How the agents' runs are led: the same for all, and each call of the SDK's finds its turn in its context."""

from typing import Any

from agents import Agent, ModelResponse, RunConfig, RunContextWrapper, RunHooks, Tool, ToolExecutionConfig
from agents.items import TResponseInputItem
from agents.run import CallModelData, ModelInputData
from agents.tool_context import ToolContext

from backend.agents.team import Invoke, Work
from backend.conversation import hidden
from backend.conversation.model_input import fitting
from backend.model.chat_model import ChatModel
from backend.tools.connectors.connectors import Connectors
from backend.tools.workspace.tools import COMMANDS, WorkspaceTools
from backend.turn.delegated.call import AgentCall
from backend.turn.delegated.delegation import Delegation
from backend.turn.recorder import CallNotMade, Calls


def leading(model: ChatModel, workspace: WorkspaceTools, connectors: Connectors) -> Work:
    """For the agents whose tools are those of the workspace, and of other MCP servers."""
    config = RunConfig(
        model=model,
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
        offered=lambda: workspace.may_start,
        usable=lambda tool: tool not in COMMANDS or workspace.runs_commands,
        reaches_others=connectors.has_any,
        of_others=connectors.tools_for,
    )


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
        await _working(context).after_model(response)

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


async def _carry_out(context: ToolContext[Any], arguments: str, invoke: Invoke) -> str:
    return await _delegation(context).carry_out(context, arguments, invoke)


def _refusal(context: ToolContext[Any]) -> str | None:
    return _working(context).refusal(context.tool_call_id)


def _readable(data: CallModelData[Any], tokens: int) -> ModelInputData:
    """What the agent's model reads: first what it is asked to do, and nothing over the window."""
    first, *others = data.model_data.input
    delegation = data.context.delegation if data.context else None
    opening = delegation.current.opening if delegation and delegation.current else str(first.get("content"))
    items = [{"role": "user", "content": hidden.said(opening)}, *map(hidden.tamed, others)]
    return ModelInputData(fitting.fit(items, tokens=tokens, head=1), data.model_data.instructions)
