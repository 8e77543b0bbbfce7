"""Calls that the SDK left alone: made as it makes them, between the same hooks."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from agents import Agent, FunctionTool, RunContextWrapper, RunHooks
from agents.tool_context import ToolContext
from openai.types.responses import ResponseFunctionToolCall

from backend.turn.calls import Calls


async def make_each(
    calls: Sequence[ResponseFunctionToolCall],
    agent: Agent[Any],
    context: RunContextWrapper[Calls],
    hooks: RunHooks[Calls],
    answer: Callable[[ResponseFunctionToolCall, str], Awaitable[None]],
) -> None:
    """One after the other; `answer` records what is said in place of the output of a call that has no tool."""
    if not calls:
        return
    # Its own tools also where they are not offered now: what was decided must not depend on that.
    tools = {tool.name: tool for tool in [*agent.tools, *await agent.get_all_tools(context)]}
    for call in calls:
        tool = tools.get(call.name)
        if not isinstance(tool, FunctionTool):
            await answer(call, f"Tool {call.name!r} not found.")
            continue
        asked = ToolContext.from_agent_context(context, call.call_id, call, agent)
        await hooks.on_tool_start(asked, agent, tool)
        result = await tool.on_invoke_tool(asked, call.arguments)
        await hooks.on_tool_end(asked, agent, tool, result)
