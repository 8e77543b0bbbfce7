"""`python -m backend mcp`: the other MCP servers, what their tools say of themselves, and which are approved."""

import argparse
import asyncio
import json
import logging
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from mcp.types import Tool

from backend.settings import ServersSettings
from backend.tools.connectors import configuration, names, offered
from backend.tools.connectors.configuration import Connector
from backend.tools.connectors.link import ConnectorLink, Unreachable
from backend.tools.connectors.server_log import redacted
from common import data_commands
from common.commands import escape_unprintable
from common.database import Database
from common.environment import read_or_stop, read_settings

_NONE = "There are no other MCP servers. Write them into mcp.json, as docs/agents.md shows, or set MCP_SERVERS_FILE."


def run(arguments: Sequence[str]) -> None:
    given = _create_parser().parse_args(arguments)
    logging.getLogger("backend.tools.connectors").setLevel(logging.ERROR)  # what is wrong is printed
    settings: ServersSettings = read_or_stop(read_settings, ServersSettings)
    servers = read_or_stop(configuration.read_servers, settings.mcp_servers_file, os.environ)
    if not servers:
        sys.exit(_NONE)
    if given.action == "list":
        data_commands.run(partial(_list, servers=servers))
        return
    server = next((one for one in servers if one.name == given.server), None)
    if server is None:
        sys.exit(f"There is no server {given.server!r}: there are {', '.join(one.name for one in servers)}.")
    if given.action == "approve":
        data_commands.run(partial(_approve, server=server, wanted=given.tools))
    else:
        logging.basicConfig(format="%(message)s", stream=sys.stderr)
        logging.getLogger("backend.tools.connectors.server_log").setLevel(logging.INFO)
        asyncio.run(_test(server))


def _create_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="mcp", description="Other MCP servers, whose tools agents may use.")
    actions = parser.add_subparsers(dest="action", required=True)
    actions.add_parser("list")
    approve = actions.add_parser("approve")
    approve.add_argument("server")
    approve.add_argument("tools", nargs="*")
    actions.add_parser("test").add_argument("server")
    return parser


async def _list(database: Database, *, servers: Sequence[Connector]) -> None:
    known = await offered.load_approved(database)
    for server, found in zip(servers, await asyncio.gather(*map(_load_tools, servers)), strict=True):
        _write(_describe_server(server, found, known))


async def _approve(database: Database, *, server: Connector, wanted: Sequence[str]) -> None:
    found = await _load_tools(server)
    if isinstance(found, str):
        sys.exit(escape_unprintable(f"mcp.{server.name} {found}. Nothing was approved."))
    there = {tool.name: tool for tool in found if server.allows(tool.name)}
    if missing := [name for name in wanted if name not in there]:
        sys.exit(f"mcp.{server.name} has no tool {missing[0]!r} that mcp.json allows. Nothing was approved.")
    chosen = {name: tool for name, tool in there.items() if not wanted or name in wanted}
    hashes = {name: offered.fingerprint(tool) for name, tool in chosen.items()}
    await offered.approve(database, server.name, hashes, all_of_it=not wanted)
    known = {(server.name, name): value for name, value in hashes.items()}
    _write(_describe_server(server, [*chosen.values()], known))


async def _test(server: Connector) -> None:
    found = await _load_tools(server)
    if isinstance(found, str):
        sys.exit(escape_unprintable(f"mcp.{server.name} {found}."))
    _write([f"mcp.{server.name} answers: {len(found)} tool{'s' if len(found) != 1 else ''}."])
    _write(f"  {_render_tool(server, tool)}" for tool in found)


async def _load_tools(server: Connector) -> list[Tool] | str:
    """Asks a server for its tools; returns what it does instead, where it does not answer."""
    if server.disabled:
        return "is disabled"
    link = ConnectorLink(server)
    with redacted([server]):
        try:
            return await link.tools()
        except Unreachable as error:
            return str(error)
        finally:
            await link.close()


def _describe_server(server: Connector, found: Sequence[Tool] | str, known: offered.Approved) -> Iterator[str]:
    agents = f"for {' and '.join(sorted(server.agents))}" if server.agents else "for no agent: name some in its agents"
    calls = "its calls are made unasked (readOnly)" if server.read_only else "each call is asked for (APPROVALS)"
    yield f"mcp.{server.name}: {server.description}, {agents}; {calls}"
    if isinstance(found, str):
        yield f"  It {found}."
        return
    for tool in found:
        yield f"  {_render_tool(server, tool)}: {_describe_state(server, tool, known)}"
        yield from (f"    {line}" for line in server.redacted(tool.description or "(no description)").split("\n"))
        yield f"    {server.redacted(json.dumps(tool.input_schema))}"


def _describe_state(server: Connector, tool: Tool, known: Mapping[tuple[str, str], bytes]) -> str:
    before = known.get((server.name, tool.name))
    if not server.allows(tool.name):
        return "not among the tools that mcp.json allows"
    if offered.is_too_large(tool):
        return f"not offered, its schema is larger than {offered.MAX_SCHEMA_BYTES:,} bytes"
    if before is None:
        return "not approved"
    return "approved" if before == offered.fingerprint(tool) else "changed since it was approved"


def _render_tool(server: Connector, tool: Tool) -> str:
    """Returns a tool's name as people and the log know it, and as the server does, where that differs."""
    shown = names.get_display_name(names.get_model_name(server.name, tool.name))
    return shown if shown == f"mcp.{server.name}.{tool.name}" else f"{shown} ({tool.name})"


def _write(lines: Sequence[str] | Iterator[str]) -> None:
    for line in lines:
        sys.stdout.write(f"{escape_unprintable(line)}\n")
