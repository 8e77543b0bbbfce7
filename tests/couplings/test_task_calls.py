"""What a task tool is called with beside what the MCP client sends: `TaskCalls` sends it without that client."""

import json
from typing import Any

from mcp.client import Client
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send

from backend.tools.connection import CLIENT, PROTOCOL
from backend.tools.tasks.tools import USER, TaskTools
from tests.serving import serve

RESULT = {"resultType": "complete", "content": [{"type": "text", "text": "no"}], "isError": True}  # with no schema
OF_TRANSPORT = {"host", "connection", "user-agent", "content-length", "accept-encoding"}


class Heard:
    """A server that keeps what it is asked, and has one result for all of it."""

    def __init__(self) -> None:
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        asked = json.loads(await request.body())
        self.headers.append({name: value for name, value in request.headers.items() if name not in OF_TRANSPORT})
        self.bodies.append({name: value for name, value in asked.items() if name != "id"})
        await JSONResponse({"jsonrpc": "2.0", "id": asked["id"], "result": RESULT})(scope, receive, send)


async def test_a_call_is_sent_as_the_mcp_client_sends_it() -> None:
    heard = Heard()
    arguments = {"user_id": "ada", "title": "Käse", "also": ["milk"]}
    async with serve(heard, lifespan="off") as url:
        tools = TaskTools(f"{url}/mcp", None, resend_seconds=1)
        await tools.connect()
        ours = await tools.call_tool("add_task", arguments, {USER: "ada", "todo/actor": "person"})
        await tools.cleanup()
        async with Client(f"{url}/mcp", mode=PROTOCOL, client_info=CLIENT, cache=None) as client:
            theirs = await client.call_tool("add_task", arguments, meta={"todo/actor": "person"})  # pyright: ignore[reportArgumentType]
    assert ours == theirs
    assert heard.bodies[0] == heard.bodies[1]
    assert heard.headers[0] == heard.headers[1]
    assert len(heard.bodies) == 2
