"""How a stop ends what a run is doing: a model's response at once, a tool call when it has ended."""

import asyncio
from collections.abc import Coroutine
from typing import Any

from backend.runs.live_run import LiveRun
from backend.tools.connectors.names import server_of
from backend.tools.run_context import RunContext
from backend.tools.table import find_tool
from backend.tools.workspace.tools import WorkspaceTools

_SHORT_SECONDS = 0.7  # how long a stop waits for a tool of another MCP server, and for a command that has not begun
_LOOK_SECONDS = 0.02  # how often a stop looks whether the tool at work has ended


async def run_until_stopped(
    work: Coroutine[Any, Any, object],
    live: LiveRun,
    context: RunContext,
    workspace: WorkspaceTools | None,
    *,
    tool_wait_seconds: float,
) -> None:
    """Carries out work and raises its error.

    After a stop it lets the tool that is at work finish, as its result is recorded, and raises `CancelledError`.
    """
    working = asyncio.create_task(work)
    stopping = asyncio.create_task(live.stop_requested.wait())
    try:
        await asyncio.wait({working, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            await _wait_for_tool(working, context, workspace, tool_wait_seconds)
            working.cancel()
            await asyncio.wait({working})
            raise asyncio.CancelledError
        working.result()
    finally:
        stopping.cancel()
        working.cancel()


async def _wait_for_tool(
    working: asyncio.Task[object], context: RunContext, workspace: WorkspaceTools | None, tool_wait_seconds: float
) -> None:
    """Waits for the tool that is at work, as long as a stop may wait; no other one begins.

    A sub-agent stops by itself; its command is killed, and returns the output so far.
    """
    now = asyncio.get_running_loop().time
    tools = [call.tool for call in context.calls_at_work]
    has_sub_agent = any(find_tool(tool).agent for tool in tools)
    is_connector = any(server_of(tool) is not None for tool in tools)
    may_be_queued = any(find_tool(tool).runs_programs for tool in tools)
    began = now()
    while context.calls_at_work and not working.done():
        seconds = _SHORT_SECONDS if is_connector or may_be_queued else tool_wait_seconds
        if not has_sub_agent and now() - began >= seconds:
            break
        if context.run.is_sub_agent and workspace is not None:
            is_queued = not await workspace.stop(context.folder, user_id=context.user_id)
            may_be_queued = may_be_queued and is_queued
        await asyncio.wait({working}, timeout=_LOOK_SECONDS)
