"""FastMCP and the MCP server library beneath it, as `mcp_server` uses them."""

import logging
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from fastmcp.server.middleware import Middleware
from starlette.requests import ClientDisconnect
from starlette.types import Message

from tests.conftest import ROOT
from tests.couplings.kettle import attached, kettle
from tests.serving import serve


class Listings(Middleware):
    def __init__(self) -> None:
        self.count = 0

    async def on_list_tools(self, context: Any, call_next: Any) -> Any:
        self.count += 1
        return await call_next(context)


async def test_a_call_lists_all_tools_to_check_its_headers_unless_the_server_is_told_their_schemas() -> None:
    listings = Listings()
    server = kettle(listings)
    async with attached(server) as connection:
        await connection.call_tool("boil", {"cups": 1})
        assert listings.count > 0, "the library does not: `get_tool_input_schema` need not be set"
        server._mcp_server.get_tool_input_schema = {
            tool.name: tool.parameters for tool in await server.list_tools()
        }.get
        listings.count = 0
        await connection.call_tool("boil", {"cups": 1})
        assert listings.count == 0


@pytest.fixture
def heard(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    """All that the libraries log, also where a test before has set up the service's own logging."""
    loggers = [logging.getLogger(name) for name in ("fastmcp", "fastmcp.server.server", "mcp.server.streamable_http")]
    before = [(logger.level, logger.propagate, logger.filters) for logger in loggers]
    for logger in loggers:
        logger.propagate, logger.filters = True, []
        logger.setLevel(logging.DEBUG)
    yield caplog
    for logger, (level, propagate, filters) in zip(loggers, before, strict=True):
        logger.propagate, logger.filters = propagate, filters
        logger.setLevel(level)


async def test_what_fails_in_a_tool_is_logged_by_the_logger_that_is_silenced(heard: pytest.LogCaptureFixture) -> None:
    async with attached(kettle()) as connection:
        heard.clear()
        await connection.call_tool("boil", {"cups": 10})
    quoting = {record.name for record in heard.records if record.exc_info}
    assert quoting == {"fastmcp.server.server"}


async def test_who_leaves_is_logged_by_the_logger_that_is_filtered(heard: pytest.LogCaptureFixture) -> None:
    app = kettle().http_app(path="/mcp", stateless_http=True, json_response=True)
    headers = {"content-type": "application/json", "accept": "application/json", "content-length": "9"}
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/mcp",
        "query_string": b"",
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
    }

    async def receive() -> Message:
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        pass

    async with app.router.lifespan_context(app):
        await app(scope, receive, send)
    left = {record.name for record in heard.records if record.exc_info and record.exc_info[0] is ClientDisconnect}
    assert left == {"mcp.server.streamable_http"}


def test_fastmcp_brings_a_console_of_its_own() -> None:
    program = (
        "import logging, fastmcp; log = logging.getLogger('fastmcp'); assert log.handlers and not log.propagate, log"
    )
    assert subprocess.run([sys.executable, "-c", program], cwd=ROOT).returncode == 0


async def test_an_app_is_started_by_the_lifespan_that_its_router_holds() -> None:
    """Where the MCP server puts its warm-up."""
    app, begun = kettle().http_app(), []
    started = app.router.lifespan_context

    @asynccontextmanager
    async def lifespan(asgi: Any) -> AsyncIterator[Any]:
        async with started(asgi) as state:
            begun.append(asgi)
            yield state

    app.router.lifespan_context = lifespan
    async with serve(app):
        assert begun == [app]
