"""A connection to another MCP server: opened when it is needed, closed when it was not for a while."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar

import httpx2
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp.types import CONNECTION_CLOSED, CallToolResult, Tool

from backend.tools.connection import CLIENT
from backend.tools.connectors.connector import Connector
from backend.tools.connectors.server_log import logged
from common.tls import tls_context

logger = logging.getLogger(__name__)

T = TypeVar("T")

_IDLE_SECONDS = 600
_MOST_PAGES = 20
_SESSION_GONE = "Session terminated"  # what the client says where a restarted server no longer knows the session


class Unreachable(Exception):
    """Its text says why a server cannot be used, as the rest of a sentence, without anything secret."""


class Unanswered(Exception):
    """Its text says that a server did not answer what it was asked, which it may have carried out."""


class Lost(Unanswered):
    """went away in the middle of the call"""


@dataclass(eq=False)
class _OpenConnection:
    """A connection that lasts as long as its task, which alone may open and close it."""

    task: asyncio.Task[None] | None = None
    client: Client | None = None
    failure: str = "did not answer"
    ready: asyncio.Event = field(default_factory=asyncio.Event)
    ending: asyncio.Event = field(default_factory=asyncio.Event)
    users: int = 0
    used: float = 0.0


class Link:
    """One process's connection to a server; what it is asked waits for it at most the server's time-out."""

    def __init__(self, server: Connector) -> None:
        self._server = server
        self._held: _OpenConnection | None = None
        self._tasks = set[asyncio.Task[None]]()

    @property
    def is_open(self) -> bool:
        return self._held is not None and self._held.client is not None

    @property
    def _late(self) -> str:
        return f"did not answer within {self._server.timeout:g} seconds"

    async def tools(self) -> list[Tool]:
        """Asks for all tools that the server has now; raises `Unreachable`, `Unanswered` and `MCPError`.

        Closes the connection to a server that does not answer even that: the next request opens another.
        """
        try:
            return await self._ask(_all_tools, again=True)
        except Unanswered:
            self._drop(self._held)
            raise

    async def call(self, tool: str, arguments: dict[str, Any], *, again: bool) -> CallToolResult:
        """Calls a tool, a second time if `again` and the connection was lost; raises as `tools` does."""
        return await self._ask(lambda client: client.call_tool(tool, arguments), again=again)

    async def close(self) -> None:
        self._drop(self._held)
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def _ask(self, request: Callable[[Client], Awaitable[T]], *, again: bool) -> T:
        try:
            return await self._ask_once(request)
        except Lost:
            if not again:
                raise
        return await self._ask_once(request)

    async def _ask_once(self, request: Callable[[Client], Awaitable[T]]) -> T:
        """Sends a request over the open connection or a new one.

        Raises `Unreachable`, `Unanswered` after the time-out, and `Lost`, after closing the connection, if it broke.
        """
        held = self._held or self._open()
        held.users += 1
        try:
            client = await self._wait_for_client(held)
            async with asyncio.timeout(self._server.timeout):
                return await request(client)
        except TimeoutError:
            raise Unanswered(self._late) from None
        except MCPError as error:
            if error.code != CONNECTION_CLOSED and error.error.message != _SESSION_GONE:
                raise
            self._drop(held)
            raise Lost(Lost.__doc__) from None
        finally:
            held.users -= 1
            held.used = _now()

    def _open(self) -> _OpenConnection:
        """Begins to open a connection in an asyncio task of its own, and returns it before it is ready."""
        self._held = held = _OpenConnection()
        held.task = asyncio.create_task(self._keep_open(held))
        self._tasks.add(held.task)
        held.task.add_done_callback(self._tasks.discard)
        return held

    async def _wait_for_client(self, held: _OpenConnection) -> Client:
        """Waits for an opening connection and returns its client.

        Raises `Unreachable` if it fails or takes too long.
        """
        try:
            async with asyncio.timeout(self._server.timeout):
                await held.ready.wait()
        except TimeoutError:
            self._drop(held)
            if held.task is not None:
                held.task.cancel()
            raise Unreachable(self._late) from None
        if held.client is None:
            raise Unreachable(held.failure)
        return held.client

    def _drop(self, held: _OpenConnection | None) -> None:
        if held is not None:
            held.ending.set()
        if self._held is held:
            self._held = None

    async def _keep_open(self, held: _OpenConnection) -> None:
        """Opens a connection and keeps it until it is dropped or was unused for long; notes why it failed."""
        try:
            async with _client(self._server) as client:
                held.client = client
                held.ready.set()
                logger.info("mcp.%s is connected", self._server.name)
                await self._until_unused(held)
        except Exception as error:  # noqa: BLE001 - the edge to what others wrote; its text may hold secrets
            held.failure = _describe_failure(self._server, error)
            logger.warning("mcp.%s %s", self._server.name, held.failure)
        finally:
            self._drop(held)
            held.ready.set()

    async def _until_unused(self, held: _OpenConnection) -> None:
        """Waits until the connection is dropped, or has had no request for ten minutes."""
        while held.users or held.used + _IDLE_SECONDS > _now():
            pause = _IDLE_SECONDS if held.users else held.used + _IDLE_SECONDS - _now()
            with suppress(TimeoutError):
                async with asyncio.timeout(max(pause, 0.001)):
                    await held.ending.wait()
                return


@asynccontextmanager
async def _client(server: Connector) -> AsyncIterator[Client]:
    """Connects to a server: starts its program, whose standard error is logged, or opens its address.

    Closes it afterwards.
    """
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
                headers={**server.headers}, timeout=httpx2.Timeout(server.timeout, read=None), verify=tls_context()
            )
            transport = streamable_http_client(server.url or "", http_client=await stack.enter_async_context(http))
        yield await stack.enter_async_context(Client(transport, cache=None, client_info=CLIENT))


async def _all_tools(client: Client) -> list[Tool]:
    found, cursor = list[Tool](), None
    for _ in range(_MOST_PAGES):
        page = await client.list_tools(cursor=cursor)
        found += page.tools
        if (cursor := page.next_cursor) is None:
            break
    return found


def _describe_failure(server: Connector, error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    match error:
        case FileNotFoundError() | PermissionError() | NotADirectoryError():
            what = "is not there" if isinstance(error, FileNotFoundError) else "cannot be started"
            return f"cannot be used: {server.description} {what}"
        case httpx2.ConnectError() | httpx2.TimeoutException():
            return f"cannot be used: {server.description} cannot be reached"
        case MCPError() if error.code == CONNECTION_CLOSED and server.command is not None:
            return f"cannot be used: {server.description} ended at once"
        case MCPError():
            return f"cannot be used: {server.description} does not answer as an MCP server"
        case _:
            return f"cannot be used: {server.description} failed ({type(error).__name__})"


def _now() -> float:
    return asyncio.get_running_loop().time()
