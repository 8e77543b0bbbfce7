"""The tools of other MCP servers for the agents that may have them; the assistant, who changes tasks, gets none."""

import asyncio
import logging
import os
import shutil
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any

from agents import FunctionTool
from agents.tool_context import ToolContext
from mcp.shared.exceptions import MCPError
from mcp.types import Tool

from backend.tools.approval_policy import arguments_of
from backend.tools.connection import UNREADABLE, FailedOutput
from backend.tools.connectors import names, offered
from backend.tools.connectors.configuration import Connector, list_enabled
from backend.tools.connectors.link import Link, Unanswered, Unreachable
from backend.tools.connectors.server_log import redacted
from common.database import Database
from common.telemetry import logs, traces

logger = logging.getLogger(__name__)

_DONE = "done"
_FRESH_SECONDS = 60  # a list of tools is asked for again after that
_AGAIN_SECONDS = 30  # a server that could not be used is tried again after that
_UNKNOWN = " Whether the call was carried out is not known: check before repeating it."
_GONE = "The call was not made: {} {}. Do what you can without it, and say so."
_HIDDEN = "The call was not made: what {} says of itself has changed, and its operator has not approved that yet."


@dataclass
class _Listed:
    link: Link
    tools: Sequence[Tool] = ()
    problem: str | None = None
    until: float = 0.0


class Connectors:
    def __init__(self, servers: Sequence[Connector], database: Database) -> None:
        self._servers = list_enabled(servers)
        self._database = database
        self._listed = {one.name: _Listed(Link(one)) for one in self._servers}
        self._said = set[tuple[str, str, bytes]]()
        self._stack = ExitStack()
        self._stack.enter_context(redacted(self._servers))
        for name, reason in self.unusable().items():
            logger.warning("%s %s", name, reason)

    def has_any(self, agent: str) -> bool:
        return any(agent in server.agents for server in self._servers)

    def unusable(self) -> dict[str, str]:
        reasons = {
            server.name: _find_missing_command(server) or self._listed[server.name].problem for server in self._servers
        }
        return {f"mcp.{name}": reason for name, reason in reasons.items() if reason}

    async def tools_for(self, agent: str) -> list[FunctionTool]:
        servers = [server for server in self._servers if agent in server.agents]
        if not servers:
            return []
        found = await asyncio.gather(*map(self._list_tools, servers))
        known = await offered.load_approved(self._database)
        return [
            self._create_tool(server, tool)
            for server, tools in zip(servers, found, strict=True)
            for tool in tools
            if self._is_offered(server, tool, known)
        ]

    async def close(self) -> None:
        await asyncio.gather(*(listed.link.close() for listed in self._listed.values()))
        self._stack.close()

    async def _list_tools(self, server: Connector) -> Sequence[Tool]:
        """Returns the tools of a server, asked for at most once a minute; none and a log line if it cannot be used."""
        listed = self._listed[server.name]
        if time.monotonic() < listed.until:
            return listed.tools
        try:
            listed.tools, listed.problem = await listed.link.tools(), None
            seconds = _FRESH_SECONDS
        except Exception as error:  # noqa: BLE001 - whatever it is, the other servers' tools work
            listed.tools, listed.problem = (), _describe_error(error)
            logger.warning("mcp.%s is left out: %s", server.name, listed.problem)
            seconds = _AGAIN_SECONDS
        listed.until = time.monotonic() + seconds
        return listed.tools

    def _is_offered(self, server: Connector, tool: Tool, known: offered.Approved) -> bool:
        """Whether a tool is allowed, approved as it is now, and not too large; logs once that it needs approval."""
        if not server.allows(tool.name):
            return False
        found = offered.fingerprint(tool)
        if known.get((server.name, tool.name)) == found:
            return not offered.is_too_large(tool)
        if (server.name, tool.name, found) not in self._said:
            self._said.add((server.name, tool.name, found))
            state = "has changed" if (server.name, tool.name) in known else "is new"
            shown = names.get_display_name(names.get_model_name(server.name, tool.name))
            logger.warning("%s %s: it is not offered until ./todo mcp approve %s", shown, state, server.name)
        return False

    def _create_tool(self, server: Connector, tool: Tool) -> FunctionTool:
        name = names.get_model_name(server.name, tool.name)
        shown = names.get_display_name(name)
        return FunctionTool(
            name=name,
            description=offered.description(server, tool, shown),
            params_json_schema=offered.schema(tool),
            on_invoke_tool=partial(self._invoke, server, tool, shown),
            strict_json_schema=False,
        )

    async def _invoke(
        self, server: Connector, tool: Tool, shown: str, context: ToolContext[Any], arguments: str
    ) -> str:
        given = arguments_of(arguments)
        if given is None:
            return FailedOutput(UNREADABLE)
        began = time.monotonic()
        with traces.span(f"tools/call {shown}", {"gen_ai.tool.name": shown}, kind="CLIENT"):
            outcome, answer = await self._call(server, tool, shown, given)
        seconds = round(time.monotonic() - began, 3)
        logger.info("called", extra=logs.fields(tool=shown, outcome=outcome, seconds=seconds))
        return answer if outcome == _DONE else FailedOutput(answer)

    async def _call(self, server: Connector, tool: Tool, shown: str, given: dict[str, Any]) -> tuple[str, str]:
        """Calls a tool, unless it has changed; returns the outcome for the log, and the text for the model."""
        link = self._listed[server.name].link
        if not server.read_only and (refusal := await self._find_refusal(server, tool, shown)) is not None:
            return "not made", refusal
        try:
            result = await link.call(tool.name, given, again=server.read_only)
        except Unreachable as error:
            return "unreachable", _GONE.format(f"mcp.{server.name}", error)
        except Unanswered as error:
            return "unanswered", f"{shown} {error}.{'' if server.read_only else _UNKNOWN}"
        except MCPError as error:
            return "refused", offered.render_error(server, error.error.message, shown)
        except Exception as error:  # noqa: BLE001 - a result that cannot be read, for one; its text may be anything
            logger.warning("%s failed: %s", shown, type(error).__name__)
            return "failed", f"{shown} gave no answer that can be read.{'' if server.read_only else _UNKNOWN}"
        return "failed" if result.is_error else _DONE, offered.text(server, result, shown)

    async def _find_refusal(self, server: Connector, tool: Tool, shown: str) -> str | None:
        """Returns why a call is not made, as when the server, asked once more, describes the tool in another way."""
        try:
            tools = await self._listed[server.name].link.tools()
        except Exception as error:  # noqa: BLE001 - as in `_list_tools`
            return _GONE.format(f"mcp.{server.name}", _describe_error(error))
        found = {offered.fingerprint(one) for one in tools}
        return None if offered.fingerprint(tool) in found else _HIDDEN.format(shown)


def _find_missing_command(server: Connector) -> str | None:
    if server.command is None:
        return None
    place = os.path.join(server.directory or "", server.command) if "/" in server.command else server.command
    if shutil.which(place, path=server.environment.get("PATH")) is not None:
        return None
    return f"cannot be used: {server.description} is not there"


def _describe_error(error: Exception) -> str:
    return str(error) if isinstance(error, Unreachable | Unanswered) else f"cannot be used ({type(error).__name__})"
