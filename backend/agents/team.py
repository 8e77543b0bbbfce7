"""The agents that work for the assistant: they are its tools, and hold nothing of a person or a conversation."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from agents import Agent, FunctionTool, Model, ModelSettings, RunConfig, RunContextWrapper, RunHooks, Tool
from agents.agent_tool_input import StructuredToolInputBuilderOptions
from agents.mcp import MCPServer
from agents.tool_context import ToolContext
from pydantic import BaseModel

from backend.agents import coder, researcher
from backend.agents.assistant import MAX_STEPS

_TEMPERATURE = 0.2
_FILES = frozenset({"list_files", "read_file", "search_files", "run_python"})
_READS = _FILES | {"list_tasks"}
_ALL = _FILES | {"write_file", "edit_file", "run_command", "commit"}

Invoke = Callable[[ToolContext[Any], str], Awaitable[Any]]


class Delegated(BaseModel):
    """What an agent is asked to do."""

    task: str
    task_id: int | None = None


@dataclass(frozen=True)
class Work:
    """How the agents' runs are led, by whoever knows of the turn that they are part of.

    `carry_out` is given the call of an agent's tool and what makes it; `refusal` says why a call of an agent's is not
    made, or nothing. `offered` tells whether agents may be started now, and of a tool's name `usable` whether it works.
    """

    hooks: RunHooks[Any]
    run_config: RunConfig
    carry_out: Callable[[ToolContext[Any], str, Invoke], Awaitable[str]]
    refusal: Callable[[ToolContext[Any]], str | None]
    offered: Callable[[], bool]
    usable: Callable[[str], bool]


class _Worker(Agent[Any]):
    """An agent with some of the tools that its servers have."""

    allowed: frozenset[str]
    work: Work

    async def get_mcp_tools(self, run_context: RunContextWrapper[Any]) -> list[Tool]:
        made = await super().get_mcp_tools(run_context)
        usable = {tool.name for tool in made if self.work.usable(tool.name)} & self.allowed
        given = [tool for tool in made if isinstance(tool, FunctionTool) and tool.name in usable]
        for tool in given:
            _guard(tool, self.work.refusal)
        return [*given]


def create_team(
    model: Model, settings: ModelSettings, workspace: MCPServer, tasks: MCPServer, work: Work
) -> list[FunctionTool]:
    """The assistant's tools that start an agent."""
    settings = settings.resolve(ModelSettings(temperature=_TEMPERATURE, tool_choice="auto"))
    made: list[FunctionTool] = []
    for who, allowed, sources in ((coder, _ALL, [workspace]), (researcher, _READS, [workspace, tasks])):
        agent = _Worker(
            name=who.NAME,
            instructions=who.INSTRUCTIONS,
            model=model,
            mcp_servers=list[MCPServer](sources),
            model_settings=settings,
            reset_tool_choice=False,
        )
        agent.allowed, agent.work = allowed, work
        made.append(_as_tool(agent, who.TOOL, who.DESCRIPTION, work))
    return made


def _as_tool(agent: _Worker, name: str, description: str, work: Work) -> FunctionTool:
    tool = agent.as_tool(
        tool_name=name,
        tool_description=description,
        parameters=Delegated,
        input_builder=_task_of,
        hooks=work.hooks,
        # Not the outer run's: that one lets the person hear its model, and reads what they say meanwhile.
        run_config=work.run_config,
        max_turns=MAX_STEPS,
        failure_error_function=None,  # whoever carries it out tells
        on_stream=_unheard,  # so that the model is asked to stream, which is checked
        on_stream_max_pending_events=None,
        is_enabled=lambda _context, _agent: work.offered(),
    )
    invoke = tool.on_invoke_tool

    async def carried_out(context: ToolContext[Any], arguments: str) -> str:
        return await work.carry_out(context, arguments, invoke)

    tool.on_invoke_tool = carried_out
    return tool


def _task_of(given: StructuredToolInputBuilderOptions) -> str:
    return given.get("params", {}).get("task", "")


def _guard(tool: FunctionTool, refusal: Callable[[ToolContext[Any]], str | None]) -> None:
    invoke = tool.on_invoke_tool

    async def guarded(context: ToolContext[Any], arguments: str) -> Any:
        return refusal(context) or await invoke(context, arguments)

    tool.on_invoke_tool = guarded


def _unheard(event: object) -> None:
    """Steps are told of by the hooks."""
