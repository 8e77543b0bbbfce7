"""The agents that work for the assistant, and the assistant's tools that start them."""

from collections.abc import Callable, Sequence

from agents import Agent, FunctionTool, Model, ModelSettings, RunContextWrapper, Tool
from agents.mcp import MCPServer
from agents.strict_schema import ensure_strict_json_schema
from agents.tool_context import ToolContext
from pydantic import ValidationError

from backend.agents import coder, researcher
from backend.agents.assistant import ApprovalAgent, guard
from backend.tools.connectors.connectors import Connectors
from backend.tools.run_context import Assignment, RunContext
from backend.tools.table import OF_AGENTS, find_start_tool, find_tool
from backend.tools.workspace.tools import WorkspaceTools

_TEMPERATURE = 0.2
_READING_TOOLS = frozenset({"list_files", "read_file", "search_files", "run_python"})
_UNREADABLE = "The call was not made: its arguments need task, a text, and task_id, a number or null."


class SubAgent(ApprovalAgent):
    """An agent with the `allowed_tools` of its servers that work now, and the tools of its connectors."""

    allowed_tools: frozenset[str]
    workspace: WorkspaceTools
    connectors: Connectors

    async def get_mcp_tools(self, run_context: RunContextWrapper[RunContext]) -> list[Tool]:
        tools = await super().get_mcp_tools(run_context)
        runs_commands = self.workspace.runs_commands  # not before: it may be found out while the tools are listed
        tools = [
            tool
            for tool in tools
            if tool.name in self.allowed_tools and (runs_commands or not find_tool(tool.name).runs_programs)
        ]
        return [*tools, *(guard(tool) for tool in await self.connectors.tools_for(self.name))]


def create_sub_agents(
    model: Model, settings: ModelSettings, *, workspace: WorkspaceTools, tasks: MCPServer, connectors: Connectors
) -> dict[str, Agent[RunContext]]:
    settings = settings.resolve(ModelSettings(temperature=_TEMPERATURE, tool_choice="auto"))

    def create(
        name: str, create_instructions: Callable[[], str], tools: frozenset[str], sources: Sequence[MCPServer]
    ) -> SubAgent:
        def render_instructions(context: RunContextWrapper[RunContext], agent: Agent[RunContext]) -> str:
            return create_instructions() + context.context.notes

        agent = SubAgent(
            name=name,
            instructions=render_instructions,
            model=model,
            mcp_servers=[*sources],
            model_settings=settings,
            reset_tool_choice=False,
        )
        agent.allowed_tools, agent.workspace, agent.connectors = tools, workspace, connectors
        return agent

    def create_coder_instructions() -> str:
        return coder.create_instructions(is_unconfined=workspace.is_unconfined, max_tokens=settings.max_tokens or 0)

    # An agent with tools of connectors, by which texts of others come in and data can leave, does not read the list.
    reaches_others = connectors.has_any(researcher.NAME)
    _, researcher_instructions = researcher.create_instructions(reaches_others=reaches_others)
    sources: list[MCPServer] = [workspace] if reaches_others else [workspace, tasks]
    reading = create(researcher.NAME, lambda: researcher_instructions, _READING_TOOLS | {"list_tasks"}, sources)
    return {
        coder.NAME: create(coder.NAME, create_coder_instructions, frozenset(OF_AGENTS), [workspace]),
        researcher.NAME: reading,
    }


def create_start_tools(*, workspace: WorkspaceTools, connectors: Connectors) -> list[FunctionTool]:
    about_researcher, _ = researcher.create_instructions(reaches_others=connectors.has_any(researcher.NAME))
    schema = ensure_strict_json_schema(Assignment.model_json_schema())

    def create(agent: str, description: str) -> FunctionTool:
        async def invoke(context: ToolContext[RunContext], arguments: str) -> str:
            try:
                assignment = Assignment.model_validate_json(arguments)
            except ValidationError:
                return _UNREADABLE
            if not assignment.task.strip():
                return _UNREADABLE
            return await context.context.run_sub_agent(context.tool_call_id, assignment, agent)

        return FunctionTool(
            name=find_start_tool(agent),
            description=description,
            params_json_schema=schema,
            on_invoke_tool=invoke,
            is_enabled=lambda _context, _agent: workspace.may_start,
        )

    return [create(coder.NAME, coder.DESCRIPTION), create(researcher.NAME, about_researcher)]
