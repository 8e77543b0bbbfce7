"""The agents and their tools are the same in the backend, the workspace and docs/agents.md."""

import re
from typing import Any, cast

import pytest
from agents import ModelSettings

import workspace.tools
from backend.agents.sub_agents import SubAgent, create_start_tools, create_sub_agents
from backend.cards.agent_steps import render_step
from backend.conversations.records import ToolCall
from backend.tools.connectors.connectors import Connectors
from backend.tools.table import CHANGING_TASKS, OF_AGENTS, TOOLS, find_tool
from tests.conftest import ROOT

DOCUMENT = (ROOT / "docs" / "agents.md").read_text()
WITHOUT_SERVERS: dict[str, Any] = {"workspace": None, "connectors": Connectors([], cast(Any, None))}


def test_agents() -> None:
    start_tools = {name: row.agent for name, row in TOOLS.items() if row.agent}
    assert {tool.name for tool in create_start_tools(**WITHOUT_SERVERS)} == {*start_tools}
    created = create_sub_agents(cast(Any, None), ModelSettings(), tasks=cast(Any, None), **WITHOUT_SERVERS)
    assert {*created} == {*start_tools.values()}
    [table] = re.findall(r"\| agent \| can \|.*?\n\n", DOCUMENT, re.DOTALL)
    assert {*re.findall(r"^\| (\w+) \|", table, re.MULTILINE)} - {"agent"} == {*created}


def test_tools_of_agents() -> None:
    assert {tool.name for tool in workspace.tools.TOOLS} == {*OF_AGENTS}
    [sentence] = re.findall(r"The tools of agents are (.*?)\.", DOCUMENT, re.DOTALL)
    documented = re.findall(r"`(\w+)`", sentence)
    assert {*documented} == {*OF_AGENTS}


def test_tools_that_can_change_something() -> None:
    reading = {name for name in {**TOOLS, **OF_AGENTS} if not find_tool(name).can_change}
    starting = {name for name, row in TOOLS.items() if row.agent}
    assert reading - starting == {"list_tasks", "list_files", "read_file", "search_files"}
    assert starting <= reading, "an agent's own calls change something"
    assert find_tool("mcp_notes__write").can_change


def test_sub_agents_change_no_tasks() -> None:
    """So only the calls of a top run tell whether it may have changed some."""
    created = create_sub_agents(cast(Any, None), ModelSettings(), tasks=cast(Any, None), **WITHOUT_SERVERS)
    assert not any(cast(SubAgent, agent).allowed_tools & CHANGING_TASKS for agent in created.values())


@pytest.mark.parametrize("tool", OF_AGENTS)
def test_step_of_a_tool(tool: str) -> None:
    call = ToolCall("run_1", "call_1", 1, tool, "{}", "running", "key")
    assert not render_step(call)["title"].startswith("Using")


@pytest.mark.parametrize("tool", workspace.tools.TOOLS, ids=lambda tool: tool.name)
def test_arguments_of_a_tool_have_rules(tool: Any) -> None:
    assert tool.parameters["properties"].keys() <= workspace.tools.RULES.keys()
