"""A connection to another MCP server, opened when it is needed, and again where it broke."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, TypeVar

import httpx2
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp.types import CONNECTION_CLOSED, CallToolResult, Tool

from backend.tools.connection import CLIENT
from backend.tools.connectors.configuration import Connector
from backend.tools.connectors.server_log import logged
from common.tls import get_tls_context

logger = logging.getLogger(__name__)

T = TypeVar("T")

_FRESH_SECONDS = 60  # a list of tools is asked for again after that
_AGAIN_SECONDS = 30  # a server that could not be used is tried again after that
_MAX_PAGES = 20
_SESSION_GONE = "Session terminated"  # what the client says where a restarted server no longer knows the session


class Unreachable(Exception):
    """A server cannot be used; the text is the rest of a sentence about it, without secrets."""


class Unanswered(Unreachable):
    """The server did not answer what it was asked, which it may have carried out."""


class _Connection:
    """A connection that its own task opens and closes, as anyio demands, until `ending` is set."""

    def __init__(self, server: Connector) -> None:
        loop = asyncio.get_running_loop()
        self.ending = asyncio.Event()
        self.client: asyncio.Future[Client] = loop.create_future()
        self.task = loop.create_task(self._keep_open(server))

    async def _keep_open(self, server: Connector) -> None:
        try:
            async with _client(server) as client:
                self.client.set_result(client)
                logger.info("mcp.%s is connected", server.name)
                await self.ending.wait()
        except Exception as error:  # noqa: BLE001 - the edge to what others wrote; its text may hold secrets
            failure = _describe_failure(server, error)
            logger.warning("mcp.%s %s", server.name, failure)
            if not self.client.done():
                self.client.set_exception(Unreachable(failure))
                self.client.exception()  # else asyncio logs an error that is never read
        finally:
            self.ending.set()
            self.client.cancel()


class Link:
    """One process's connection to a server; what it is asked waits for it at most the server's time-out.

    `problem` is why its tools could not be listed when they were asked for the last time.
    """

    def __init__(self, server: Connector) -> None:
        self.server = server
        self.problem: str | None = None
        self._late = f"did not answer within {server.timeout:g} seconds"
        self._listed: Sequence[Tool] = ()
        self._fresh_until = 0.0
        self._connection: _Connection | None = None
        self._tasks = set[asyncio.Task[None]]()

    async def list_tools(self) -> Sequence[Tool]:
        """Returns the tools, asked for at most once a minute; none and a log line if the server cannot be used."""
        if time.monotonic() >= self._fresh_until:
            try:
                self._listed, self.problem, seconds = await self.tools(), None, _FRESH_SECONDS
            except Unreachable as error:
                self._listed, self.problem, seconds = (), str(error), _AGAIN_SECONDS
                logger.warning("mcp.%s is left out: %s", self.server.name, error)
            self._fresh_until = time.monotonic() + seconds
        return self._listed

    async def tools(self) -> list[Tool]:
        """Asks for all tools that the server has now; raises `Unreachable`."""
        try:
            return await self._ask(_all_tools, again=True)
        except Unreachable as error:
            if isinstance(error, Unanswered):
                self._drop()
            raise
        except MCPError:
            raise Unreachable("rejected the request to list its tools") from None
        except Exception as error:  # noqa: BLE001 - what it answers may be anything, and hold secrets
            raise Unreachable(f"cannot be used ({type(error).__name__})") from None

    async def call(self, tool: str, arguments: dict[str, Any], *, again: bool) -> CallToolResult:
        return await self._ask(lambda client: client.call_tool(tool, arguments), again=again)

    async def close(self) -> None:
        self._drop()
        if self._tasks:
            await asyncio.wait(self._tasks)

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.ending.set()

    async def _ask(self, request: Callable[[Client], Awaitable[T]], *, again: bool) -> T:
        """Sends a request over the open connection or a new one; if that breaks, once more with `again`."""
        connection = self._connection
        if connection is None or connection.ending.is_set():
            connection = self._connection = _Connection(self.server)
            self._tasks.add(connection.task)
            connection.task.add_done_callback(self._tasks.discard)
        client = await self._wait_until_open(connection)
        try:
            async with asyncio.timeout(self.server.timeout):
                return await request(client)
        except TimeoutError:
            raise Unanswered(self._late) from None
        except MCPError as error:
            if error.code != CONNECTION_CLOSED and error.error.message != _SESSION_GONE:
                raise
        connection.ending.set()
        if not again:
            raise Unanswered("went away in the middle of the call")
        return await self._ask(request, again=False)

    async def _wait_until_open(self, connection: _Connection) -> Client:
        await asyncio.wait({connection.client}, timeout=self.server.timeout)
        if not connection.client.done():
            connection.task.cancel()
            raise Unreachable(self._late)
        if connection.client.cancelled():
            raise Unreachable("did not answer")
        return connection.client.result()


@asynccontextmanager
async def _client(server: Connector) -> AsyncIterator[Client]:
    async with AsyncExitStack() as stack:
        if server.command is not None:
            errors = stack.enter_context(logged(server))
            program = StdioServerParameters(
                command=server.command, args=[*server.arguments], env={**server.environment}, cwd=server.directory
            )
            transport = stdio_client(program, errlog=errors)
        else:
            # No redirects: they would take the headers along.
            http = httpx2.AsyncClient(
                headers={**server.headers},
                limits=httpx2.Limits(keepalive_expiry=2),  # most servers close idle connections after five seconds
                timeout=httpx2.Timeout(server.timeout, read=None),
                verify=get_tls_context(),
            )
            transport = streamable_http_client(server.url or "", http_client=await stack.enter_async_context(http))
        yield await stack.enter_async_context(Client(transport, cache=None, client_info=CLIENT))


async def _all_tools(client: Client) -> list[Tool]:
    found, cursor = list[Tool](), None
    for _ in range(_MAX_PAGES):
        page = await client.list_tools(cursor=cursor)
        found += page.tools
        if (cursor := page.next_cursor) is None:
            break
    return found


def _describe_failure(server: Connector, error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    match error:
        case FileNotFoundError():
            what = "is not there"
        case PermissionError() | NotADirectoryError():
            what = "cannot be started"
        case httpx2.ConnectError() | httpx2.TimeoutException():
            what = "cannot be reached"
        case MCPError() if error.code == CONNECTION_CLOSED and server.command is not None:
            what = "ended at once"
        case MCPError():
            what = "does not answer as an MCP server"
        case _:
            what = f"failed ({type(error).__name__})"
    return f"cannot be used: {server.description} {what}"
