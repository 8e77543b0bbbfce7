"""Runs backends with tools of other MCP servers, which the operator approves."""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

from backend.tools.connectors import configuration, offered
from backend.tools.connectors.link import ConnectorLink
from common.database import Database
from tests.logins import as_owner
from tests.scripted_model import ScriptedModel
from tests.support.backends import user_at
from tests.support.commands import todo
from tests.support.model_requests import agent_of, outputs_of, requests_to
from tests.support.script import calls, says, start_researcher
from tests.support.stack import SIGN_IN, Services
from tests.support.users import User

Json = dict[str, Any]


async def approve_by_command(services: Services, file: Path, server: str, **variables: str) -> None:
    """Approves all current tools of a server, as the operator does."""
    settings = {"MIGRATION_DATABASE_URL": as_owner(services.database_url), "MCP_SERVERS_FILE": str(file), **SIGN_IN}
    result = await asyncio.to_thread(partial(todo, "mcp", "approve", server, **settings, **variables))
    assert result.returncode == 0, result.stderr


async def approve_server(services: Services, file: Path, server: str) -> None:
    """The same without a process of its own."""
    [entry] = [one for one in configuration.read_servers(file, os.environ) if one.name == server]
    link = ConnectorLink(entry)
    hashes = {tool.name: offered.fingerprint(tool) for tool in await link.tools()}
    await link.close()
    async with Database(as_owner(services.database_url)) as database:
        await offered.approve(database, server, hashes, all_of_it=True)


@asynccontextmanager
async def user_with_servers(
    services: Services,
    file: Path,
    servers: Json,
    *,
    approvals: str = "bulk",
    approved: Sequence[str] = (),
) -> AsyncIterator[User]:
    """Yields a user of a backend with these entries in mcp.json."""
    file.write_text(json.dumps({"mcpServers": servers}))  # noqa: ASYNC240 - a small local file
    for server in approved:
        await approve_server(services, file, server)
    async with (
        user_at(services, MCP_SERVERS_FILE=str(file), APPROVALS=approvals) as user,
    ):
        yield user


async def research(user: User, model: ScriptedModel, *tool_calls: Json) -> list[str]:
    """Lets the researcher make each call in a model turn; returns the outputs that it reads."""
    await model.reset()
    await model.script(start_researcher("look"), *map(calls, tool_calls), says("I looked."), says("Fine."))
    answer = await user.chatkit.say("look")
    assert (answer.error, answer.text) == (None, "Fine.")
    last = [body for body in await requests_to(model) if agent_of(body) == "researcher"][-1]
    return outputs_of(last)


async def list_researcher_tools(user: User, model: ScriptedModel) -> dict[str, str]:
    """Returns the descriptions of the researcher's tools from other servers, by name."""
    await research(user, model)
    [body] = [body for body in await requests_to(model) if agent_of(body) == "researcher"]
    functions = [tool["function"] for tool in body["tools"]]
    return {tool["name"]: tool["description"] for tool in functions if tool["name"].startswith("mcp_")}
