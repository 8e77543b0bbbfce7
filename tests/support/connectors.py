"""Users of backends with tools of other MCP servers, and the operator who approves these."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

from tests.logins import as_owner
from tests.scripted_model import ScriptedModel
from tests.support.backends import local_backend
from tests.support.commands import todo
from tests.support.model_requests import agent_of, requests_to
from tests.support.script import calls, says, start_researcher
from tests.support.stack import SIGN_IN, Services
from tests.support.users import User

Json = dict[str, Any]


async def approve(services: Services, file: Path, server: str, **variables: str) -> None:
    """The operator approves all tools of a server, as they are now."""
    settings = {"MIGRATION_DATABASE_URL": as_owner(services.database_url), "MCP_SERVERS_FILE": str(file), **SIGN_IN}
    done = await asyncio.to_thread(partial(todo, "mcp", "approve", server, **settings, **variables))
    assert done.returncode == 0, done.stderr


@asynccontextmanager
async def user_of_servers(
    services: Services,
    file: Path,
    servers: Json,
    *,
    approvals: str = "bulk",
    approved: Sequence[str] = (),
    **variables: str,
) -> AsyncIterator[User]:
    """A user of a backend with these entries of mcp.json; `variables` are what the entries refer to."""
    file.write_text(json.dumps({"mcpServers": servers}))  # noqa: ASYNC240 - a small file of the test's own
    for server in approved:
        await approve(services, file, server, **variables)
    async with (
        local_backend(services, MCP_SERVERS_FILE=str(file), APPROVALS=approvals) as backend,
        User(backend) as user,
    ):
        yield user


async def research(user: User, model: ScriptedModel, *tool_calls: Json) -> list[str]:
    """What the researcher reads of these calls, each of which it makes in a model turn of its own."""
    await model.reset()
    await model.script(start_researcher("look"), *map(calls, tool_calls), says("I looked."), says("Done."))
    answer = await user.chatkit.say("look")
    assert (answer.error, answer.text) == (None, "Done.")
    last = [body for body in await requests_to(model) if agent_of(body) == "researcher"][-1]
    return [message["content"] for message in last["messages"] if message["role"] == "tool"]


async def tools_of_researcher(user: User, model: ScriptedModel) -> dict[str, str]:
    """The descriptions of the tools that the researcher has of other servers, by their names."""
    await research(user, model)
    [body] = [body for body in await requests_to(model) if agent_of(body) == "researcher"]
    functions = [tool["function"] for tool in body["tools"]]
    return {tool["name"]: tool["description"] for tool in functions if tool["name"].startswith("mcp_")}
