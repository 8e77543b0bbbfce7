"""Finds out whether an answer claims a change that its run has not made."""

import asyncio
from collections.abc import Sequence

from backend.conversations.records import UNKNOWN_OUTCOME, Run, ToolCall
from backend.conversations.timeline import load_trees
from backend.tools.connectors.names import server_of
from backend.tools.table import find_tool
from common.claims import find_claims
from common.database import Database


async def has_false_claim(database: Database, run: Run, calls: Sequence[ToolCall], answer: str) -> bool:
    """Whether an answer claims a change although neither its run nor the run's sub-agents can have changed anything."""
    if not answer or any(map(may_have_changed, calls)):
        return False
    # In a thread, which lets others run between two expressions.
    if not await asyncio.to_thread(find_claims, answer, has_read=_has_only_read(calls)):
        return False
    if any(find_tool(call.tool).agent for call in calls):
        tree = await load_trees(database, run.user_id, [run.top_run_id], only_sub_agents=True)
        return not any(map(may_have_changed, tree.calls))
    return True


def may_have_changed(call: ToolCall) -> bool:
    """Whether a call can have changed something: also one without a known outcome, and a program that has failed."""
    tool = find_tool(call.tool)
    if not tool.can_change or call.state != "failed":
        return tool.can_change and call.state in ("done", "unknown")
    return tool.runs_programs or server_of(call.tool) is not None or call.output == UNKNOWN_OUTCOME


def _has_only_read(calls: Sequence[ToolCall]) -> bool:
    """Whether tasks or files were read, and no change was even tried: an answer may then tell what is there."""
    tools = [find_tool(call.tool) for call in calls]
    has_read = any(tool.reads and call.state == "done" for tool, call in zip(tools, calls, strict=True))
    return has_read and not any(tool.can_change for tool in tools)
