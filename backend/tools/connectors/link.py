"""A connection to another MCP server, opened when it is needed, and again where it broke."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, TypeVar

import httpx2
from mcp.client import Client
from mcp.shared.exceptions import MCPError
from mcp.types import CONNECTION_CLOSED, CallToolResult, Tool

from backend.tools.connection import CLIENT
from backend.tools.connectors.configuration import Connector
from backend.tools.connectors.http_failure import HttpFailure
from backend.tools.connectors.http_transport import connect_to_server
from backend.tools.connectors.program_transport import start_program
from backend.tools.connectors.read_limit import LIST, RESULT, ReadLimit
from backend.tools.connectors.received_messages import MAX_TOOLS
from backend.tools.connectors.server_log import logged

logger = logging.getLogger(__name__)

T = TypeVar("T")

_FRESH_SECONDS = 60  # a list of tools is asked for again after that
_AGAIN_SECONDS = 30  # a server that could not be used is tried again after that
_MAX_PAGES = 50


class Unreachable(Exception):
    """A server cannot be used; the text is the rest of a sentence about it, without secrets."""


class Unanswered(Unreachable):
    """The server did not answer what it was asked, which it may have carried out."""


class _Connection:
    """A connection that its own task opens and closes, as anyio demands, until `ending` is set."""

    def __init__(self, server: Connector) -> None:
        loop = asyncio.get_running_loop()
        self.limit = ReadLimit()
        self.ending = asyncio.Event()
        self.client: asyncio.Future[Client] = loop.create_future()
        self.task = loop.create_task(self._keep_open(server))
        self.limit.failure.add_done_callback(lambda _: self.ending.set())

    async def answer(self, request: Awaitable[T], seconds: float) -> T:
        """Returns what a request does; raises `TimeoutError`, and `Unanswered` if the server sends too much."""
        task = asyncio.ensure_future(request)
        try:
            await asyncio.wait({task, self.limit.failure}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            if self.limit.failure.done():
                raise Unanswered(str(self.limit.failure.result()))
            if not task.done():
                raise TimeoutError
            return task.result()
        finally:
            task.cancel()
            task.add_done_callback(lambda done: done.cancelled() or done.exception())  # else asyncio logs it

    async def _keep_open(self, server: Connector) -> None:
        try:
            async with _client(server, self.limit) as client:
                self.client.set_result(client)
                logger.info("mcp.%s is connected", server.name)
                await self.ending.wait()
        except Exception as error:  # noqa: BLE001 - the edge to what others wrote; its text may hold secrets
            too_much = self.limit.failure
            failure = str(too_much.result()) if too_much.done() else _describe_failure(server, error)
            logger.warning("mcp.%s %s", server.name, failure)
            if not self.client.done():
                self.client.set_exception(Unreachable(failure))
                self.client.exception()  # else asyncio logs an error that is never read
        finally:
            self.ending.set()
            self.client.cancel()


class ConnectorLink:
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
            return await self._ask(_all_tools, LIST, again=True)
        except Unreachable as error:
            if isinstance(error, Unanswered):
                self._drop()
            raise
        except MCPError as error:
            raise Unreachable(f"rejected the request to list its tools{HttpFailure.of(error) or ''}") from None
        except Exception as error:  # noqa: BLE001 - what it answers may be anything, and hold secrets
            raise Unreachable(f"cannot be used ({type(error).__name__})") from None

    async def call(self, tool: str, arguments: dict[str, Any], *, again: bool) -> CallToolResult:
        return await self._ask(lambda client: client.call_tool(tool, arguments), RESULT, again=again)

    async def close(self) -> None:
        self._drop()
        if self._tasks:
            await asyncio.wait(self._tasks)

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.ending.set()

    async def _ask(
        self, request: Callable[[Client], Awaitable[T]], size: int, *, again: bool, is_second: bool = False
    ) -> T:
        """Sends a request over the open connection or a new one; if that breaks or is busy, once more with `again`.

        One that the server did not carry out, as it no longer knows the session, is always sent again. The answer can
        have `size` bytes.
        """
        connection = self._connection
        if connection is None or connection.ending.is_set():
            connection = self._connection = _Connection(self.server)
            self._tasks.add(connection.task)
            connection.task.add_done_callback(self._tasks.discard)
        client = await self._wait_until_open(connection)
        try:
            with connection.limit.expect(size):
                return await connection.answer(request(client), self.server.timeout)
        except TimeoutError:
            raise Unanswered(self._late) from None
        except MCPError as error:
            failure = HttpFailure.of(error)
            if failure is not None and failure.has_lost_session and not is_second:
                connection.ending.set()
                return await self._ask(request, size, again=again, is_second=True)
            if failure is not None and failure.is_passing and again and not is_second:
                await asyncio.sleep(failure.wait_seconds)
                return await self._ask(request, size, again=False, is_second=True)
            if error.code != CONNECTION_CLOSED:
                raise
        connection.ending.set()
        if not again:
            raise Unanswered("went away in the middle of the call")
        return await self._ask(request, size, again=False)

    async def _wait_until_open(self, connection: _Connection) -> Client:
        opened = {connection.client, connection.limit.failure}
        await asyncio.wait(opened, timeout=self.server.timeout, return_when=asyncio.FIRST_COMPLETED)
        if connection.limit.failure.done():
            raise Unreachable(str(connection.limit.failure.result()))
        if not connection.client.done():
            connection.task.cancel()
            raise Unreachable(self._late)
        if connection.client.cancelled():
            raise Unreachable("did not answer")
        return connection.client.result()


@asynccontextmanager
async def _client(server: Connector, limit: ReadLimit) -> AsyncIterator[Client]:
    async with AsyncExitStack() as stack:
        if server.command is not None:
            transport = start_program(server, stack.enter_context(logged(server)), limit)
        else:
            transport = connect_to_server(server, limit)
        client = await stack.enter_async_context(Client(transport, cache=None, client_info=CLIENT))
        # The SDK (mcp 2.3) has no setting for this: it compares results with a schema of the server's, whose patterns
        # can hold the event loop for hours. Nothing reads that part of a result as anything but text.
        client.session.validate_tool_result = _accept_result
        yield client


async def _accept_result(name: str, result: CallToolResult) -> None: ...


async def _all_tools(client: Client) -> list[Tool]:
    """Returns all tools, and the first of several with one name; a repeated cursor ends the list."""
    found, cursors = dict[str, Tool](), list[str | None]([None])
    while len(cursors) <= _MAX_PAGES:
        page = await client.list_tools(cursor=cursors[-1])
        for tool in page.tools:
            found.setdefault(tool.name, tool)
        if len(found) > MAX_TOOLS:
            break
        if page.next_cursor is None or page.next_cursor in cursors:
            return [*found.values()]
        cursors.append(page.next_cursor)
    raise Unreachable(f"lists more than {MAX_TOOLS} tools, or on more than {_MAX_PAGES} pages")


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
