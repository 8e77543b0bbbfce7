"""The tools of other MCP servers for the agents that may have them; the assistant, who changes tasks, gets none."""

import asyncio
import json
import logging
import os
import shutil
import time
from collections.abc import Sequence
from functools import partial
from itertools import accumulate
from typing import Any

from agents import FunctionTool
from agents.tool_context import ToolContext
from mcp.shared.exceptions import MCPError
from mcp.types import Tool

from backend.tools.approval_policy import arguments_of
from backend.tools.connection import UNREADABLE, FailedOutput
from backend.tools.connectors import names, offered
from backend.tools.connectors.configuration import Connector
from backend.tools.connectors.http_failure import HttpFailure
from backend.tools.connectors.link import ConnectorLink, Unanswered, Unreachable
from common.database import Database
from common.telemetry import logs, traces

logger = logging.getLogger(__name__)

_DONE = "done"
_MAX_SAID = 1_000  # tools of which the log says that they need approval: a server can make up new ones each minute
_UNKNOWN = " Whether the call was carried out is not known: check before repeating it."
_GONE = "The call was not made: {} {}. Do what you can without it, and say so."
_HIDDEN = "The call was not made: what {} says of itself has changed, and its operator has not approved that yet."


class Connectors:
    def __init__(self, servers: Sequence[Connector], database: Database) -> None:
        self._links = [ConnectorLink(server) for server in servers]
        self._database = database
        self._said = set[tuple[str, str, bytes]]()
        self._left_out = 0
        for name, reason in self.unusable().items():
            logger.warning("%s %s", name, reason)

    def has_any(self, agent: str) -> bool:
        return any(agent in link.server.agents for link in self._links)

    def unusable(self) -> dict[str, str]:
        reasons = {link.server.name: _find_missing_command(link.server) or link.problem for link in self._links}
        return {f"mcp.{name}": reason for name, reason in reasons.items() if reason}

    async def tools_for(self, agent: str) -> list[FunctionTool]:
        links = [link for link in self._links if agent in link.server.agents]
        if not links:
            return []
        found = await asyncio.gather(*(link.list_tools() for link in links))
        known = await offered.load_approved(self._database)
        created = [
            _create_tool(link, tool)
            for link, tools in zip(links, found, strict=True)
            for tool in tools
            if self._is_offered(link.server, tool, known)
        ]
        return self._limit_tools(created)

    async def close(self) -> None:
        await asyncio.gather(*(link.close() for link in self._links))

    def _limit_tools(self, tools: Sequence[FunctionTool]) -> list[FunctionTool]:
        """Leaves out the tools after those that a model reads, and logs once how many."""
        sizes = (len(tool.description) + len(json.dumps(tool.params_json_schema)) for tool in tools)
        read = [tool for tool, size in zip(tools, accumulate(sizes), strict=True) if size <= offered.MAX_TOTAL_BYTES]
        if (left := len(tools) - len(read)) and left != self._left_out:
            logger.warning(
                "%s tools of other servers are left out: models read %s bytes of all. Name fewer tools in mcp.json.",
                left,
                f"{offered.MAX_TOTAL_BYTES:,}",
            )
        self._left_out = left
        return read

    def _is_offered(self, server: Connector, tool: Tool, known: offered.Approved) -> bool:
        """Whether a tool is allowed, approved as it is now, and not too large; logs once that it needs approval."""
        if not server.allows(tool.name):
            return False
        found = offered.fingerprint(tool)
        if known.get((server.name, tool.name)) == found:
            return not offered.is_too_large(tool)
        if (server.name, tool.name, found) not in self._said and len(self._said) < _MAX_SAID:
            self._said.add((server.name, tool.name, found))
            state = "has changed" if (server.name, tool.name) in known else "is new"
            shown = names.get_display_name(names.get_model_name(server.name, tool.name))
            logger.warning("%s %s: it is not offered until ./todo mcp approve %s", shown, state, server.name)
        return False


def _create_tool(link: ConnectorLink, tool: Tool) -> FunctionTool:
    name = names.get_model_name(link.server.name, tool.name)
    shown = names.get_display_name(name)
    return FunctionTool(
        name=name,
        description=offered.description(link.server, tool, shown),
        params_json_schema={"type": "object", "properties": {}, **offered.clean_schema(tool.input_schema)},
        on_invoke_tool=partial(_invoke, link, tool, shown),
        strict_json_schema=False,
    )


async def _invoke(link: ConnectorLink, tool: Tool, shown: str, context: ToolContext[Any], arguments: str) -> str:
    given = arguments_of(arguments)
    if given is None:
        return FailedOutput(UNREADABLE)
    began = time.monotonic()
    with traces.span(f"tools/call {shown}", {"gen_ai.tool.name": shown}, kind="CLIENT"):
        outcome, answer = await _call(link, tool, shown, given)
    seconds = round(time.monotonic() - began, 3)
    logger.info("tool call", extra=logs.fields(tool=shown, outcome=outcome, seconds=seconds))
    return answer if outcome == _DONE else FailedOutput(answer)


async def _call(link: ConnectorLink, tool: Tool, shown: str, given: dict[str, Any]) -> tuple[str, str]:
    """Calls a tool, unless it has changed; returns the outcome for the log, and the text for the model."""
    server = link.server
    unknown = "" if server.read_only else _UNKNOWN
    try:
        if not server.read_only and not await _is_unchanged(link, tool):
            return "not made", _HIDDEN.format(shown)
    except Unreachable as error:
        return "not made", _GONE.format(f"mcp.{server.name}", error)
    try:
        result = await link.call(tool.name, given, again=server.read_only)
    except Unanswered as error:
        return "unanswered", f"{shown} {error}.{unknown}"
    except Unreachable as error:
        return "unreachable", _GONE.format(f"mcp.{server.name}", error)
    except MCPError as error:
        failure = HttpFailure.of(error)
        may_have_acted = failure is not None and failure.may_have_acted
        said = offered.render_error(server, error.error.message, shown, str(failure or ""))
        return "refused", f"{said}{unknown if may_have_acted else ''}"
    except Exception as error:  # noqa: BLE001 - a result that cannot be read, for one; its text may be anything
        logger.warning("%s failed: %s", shown, type(error).__name__)
        return "failed", f"{shown} gave no answer that can be read.{unknown}"
    return "failed" if result.is_error else _DONE, offered.text(server, result, shown)


async def _is_unchanged(link: ConnectorLink, tool: Tool) -> bool:
    """Whether the server, asked once more, still describes the tool as it did. Raises `Unreachable`."""
    return offered.fingerprint(tool) in map(offered.fingerprint, await link.tools())


def _find_missing_command(server: Connector) -> str | None:
    if server.command is None:
        return None
    place = os.path.join(server.directory or "", server.command) if "/" in server.command else server.command
    if shutil.which(place, path=server.environment.get("PATH")) is not None:
        return None
    return f"cannot be used: {server.description} is not there"
