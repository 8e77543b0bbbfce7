"""The agents that work for the assistant: they are its tools, and hold nothing of a person or a conversation."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from agents import Agent, FunctionTool, Model, ModelSettings, RunConfig, RunContextWrapper, RunHooks, Tool
from agents.agent_tool_input import StructuredToolInputBuilderOptions
from agents.mcp import MCPServer
from agents.tool_context import ToolContext
from pydantic import BaseModel

from backend.agents import coder, researcher
from backend.agents.assistant import MAX_STEPS, guard

_TEMPERATURE = 0.2
_FILES = frozenset({"list_files", "read_file", "search_files", "run_python"})
_ALL = _FILES | {"write_file", "edit_file", "run_command", "commit"}

Waits = Callable[[RunContextWrapper[Any], dict[str, Any], str], Awaitable[bool]]


class Delegated(BaseModel):
    """What an agent is asked to do."""

    task: str
    task_id: int | None = None


@dataclass(frozen=True)
class Start:
    """An agent, its hooks, and what lets it work: with its call and the arguments of that."""

    agent: Agent[Any]
    hooks: RunHooks[Any]
    invoke: Callable[[ToolContext[Any], str], Awaitable[Any]]


@dataclass(frozen=True)
class Work:
    """How the agents' runs are led, by whoever knows of the turn that they are part of.

    `carry_out` is given the call of an agent's tool and what starts it; `refusal` says why a call of an agent's is not
    made, or nothing, and `waits` whether a call has to wait for the person's consent. `offered` tells whether agents
    may be started now, `is_unconfined` whether nothing confines their programs, `usable` whether a tool works. Of an
    agent's name `reaches_others` tells whether it may have tools of other MCP servers, which are `of_others`.
    """

    hooks: RunHooks[Any]
    run_config: RunConfig
    carry_out: Callable[[ToolContext[Any], str, Start], Awaitable[str]]
    refusal: Callable[[ToolContext[Any]], str | None]
    waits: Waits
    offered: Callable[[], bool]
    is_unconfined: Callable[[], bool]
    usable: Callable[[str], bool]
    reaches_others: Callable[[str], bool]
    of_others: Callable[[str], Awaitable[Sequence[FunctionTool]]]


class _Worker(Agent[Any]):
    """An agent with some of the tools that its servers have."""

    allowed: frozenset[str]
    work: Work

    async def get_mcp_tools(self, run_context: RunContextWrapper[Any]) -> list[Tool]:
        made = await super().get_mcp_tools(run_context)
        usable = {tool.name for tool in made if self.work.usable(tool.name)} & self.allowed
        given = [tool for tool in made if isinstance(tool, FunctionTool) and tool.name in usable]
        given += await self.work.of_others(self.name)
        for tool in given:
            guard(tool, self.work.refusal)
            tool.needs_approval = self.work.waits  # decided when it is called: what confines it may be another by then
        return [*given]


def create_team(
    model: Model, settings: ModelSettings, workspace: MCPServer, tasks: MCPServer, work: Work
) -> list[FunctionTool]:
    """The assistant's tools that start an agent."""
    settings = settings.resolve(ModelSettings(temperature=_TEMPERATURE, tool_choice="auto"))
    made: list[FunctionTool] = []
    reaches = work.reaches_others(researcher.NAME)
    # What others write, beside an open way out, must not stand beside the list: there is one or the other.
    read = (_FILES, [workspace]) if reaches else (_FILES | {"list_tasks"}, [workspace, tasks])
    for who, (allowed, sources), told in (
        (coder, (_ALL, [workspace]), (coder.DESCRIPTION, _coder_instructions(work, settings.max_tokens or 0))),
        (researcher, read, researcher.told(reaches_others=reaches)),
    ):
        description, instructions = told
        agent = _Worker(
            name=who.NAME,
            instructions=instructions,
            model=model,
            mcp_servers=list[MCPServer](sources),
            model_settings=settings,
            reset_tool_choice=False,
        )
        agent.allowed, agent.work = allowed, work
        made.append(_as_tool(agent, who.TOOL, description, work))
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
    start = Start(agent, work.hooks, tool.on_invoke_tool)

    async def carried_out(context: ToolContext[Any], arguments: str) -> str:
        return await work.carry_out(context, arguments, start)

    tool.on_invoke_tool = carried_out
    return tool


def _coder_instructions(work: Work, max_tokens: int) -> Callable[[RunContextWrapper[Any], Agent[Any]], str]:
    """What confines programs may be another by the time that the coder starts."""
    return lambda _context, _agent: coder.told(is_unconfined=work.is_unconfined(), max_tokens=max_tokens)


def _task_of(given: StructuredToolInputBuilderOptions) -> str:
    return given.get("params", {}).get("task", "")


def _unheard(event: object) -> None:
    """Steps are told of by the hooks."""
