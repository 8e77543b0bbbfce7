"""Any MCP server can be attached with the connection alone: one of the weather, which knows no person and no key."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from agents import Agent, RunConfig, Runner
from agents.testing import ScriptedModel, assistant_message, function_call
from fastmcp import Context, FastMCP
from mcp_types import ToolListChangedNotification
from prometheus_client import REGISTRY
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from backend.tools.connection import Connection, ToolsUnavailable
from tests.serving import serve
from tests.waiting import until


class Weather:
    """A server on a port of its own, which can be started again; `asked` are the towns of the calls it carried out."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}/mcp"
        self.asked: list[str] = []
        self.lost = 0
        self.kinds: list[str] = []
        self._port = port

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        server = FastMCP("weather")
        server.tool(self.forecast)
        async with serve(self._losing(server.http_app(stateless_http=True)), port=self._port):
            yield

    async def forecast(self, town: str, context: Context) -> str:
        self.asked.append(town)
        await context.send_notification(ToolListChangedNotification())  # the answer becomes a stream of events
        return f"rain in {town}"

    def _losing(self, app: ASGIApp) -> ASGIApp:
        """In the place of the next answers to calls, as many as `lost`, comes a page of a proxy."""

        async def losing(scope: Scope, receive: Receive, send: Send) -> None:
            lose = self.lost > 0 and (b"mcp-method", b"tools/call") in scope.get("headers", ())
            self.lost -= lose

            async def changed(message: Message) -> None:
                if message["type"] == "http.response.start":
                    self.kinds.append(Headers(scope=message)["content-type"])
                    message = {**message, "status": 502} if lose else message
                await send(message)

            await app(scope, receive, changed)

        return losing


@pytest.fixture
def weather(free_port: Callable[[], int]) -> Weather:
    return Weather(free_port())


@asynccontextmanager
async def connected(weather: Weather, *, resend_seconds: float = 0.2) -> AsyncIterator[Any]:
    connection = Connection("weather", weather.url, resend_seconds=resend_seconds, answer_seconds=5)
    await connection.connect()
    try:
        yield connection
    finally:
        await connection.cleanup()


async def text_of(connection: Connection, town: str) -> str:
    result = await connection.call_tool("forecast", {"town": town})
    return result.content[0].text  # pyright: ignore[reportAttributeAccessIssue]


def retries() -> float:
    return REGISTRY.get_sample_value("todo_retries_total", {"to": "tools"}) or 0


async def test_an_agent_uses_another_server_before_and_after_its_restart(weather: Weather) -> None:
    async with connected(weather) as connection:  # while the server is down
        assert await connection.problem() == f"The MCP server does not answer at {weather.url}"
        for town in ("Ulm", "Bonn"):
            call = function_call("forecast", {"town": town}, call_id="call_1")
            model = ScriptedModel([[call], [assistant_message("take an umbrella")]])
            agent = Agent("Guide", model=model, mcp_servers=[connection])
            async with weather.running():
                result = await Runner.run(agent, "weather?", run_config=RunConfig(tracing_disabled=True))
                assert await connection.problem() is None
            assert f"rain in {town}" in str(result.to_input_list())
            with pytest.raises(ToolsUnavailable, match=r"^The tools cannot be reached"):
                await connection.call_tool("forecast", {"town": "Graz"})
    assert weather.asked == ["Ulm", "Bonn"]
    assert set(weather.kinds) == {"application/json", "text/event-stream"}


async def test_a_call_waits_for_a_server_that_starts(weather: Weather) -> None:
    async with connected(weather, resend_seconds=20) as connection, asyncio.TaskGroup() as group:
        before = retries()
        call = group.create_task(text_of(connection, "Ulm"))
        await until(lambda: retries() > before)
        async with weather.running():
            assert await call == "rain in Ulm"
    assert weather.asked == ["Ulm"]


async def test_a_call_that_may_have_been_carried_out_is_not_made_again(weather: Weather) -> None:
    async with weather.running(), connected(weather) as connection:
        weather.lost = 1
        with pytest.raises(ToolsUnavailable):
            await text_of(connection, "Ulm")
        assert await text_of(connection, "Bonn") == "rain in Bonn"
    assert weather.asked == ["Ulm", "Bonn"]
