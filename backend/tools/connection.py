"""A connection to an MCP server, which all users of a process share and which survives a restart of the server."""

import asyncio
import json
import logging
from collections.abc import Awaitable
from contextlib import AsyncExitStack
from typing import Any, ClassVar, TypeVar

import httpx2
from agents import AgentBase
from agents.exceptions import ModelBehaviorError
from agents.mcp import MCPServer, MCPToolMetaContext
from agents.mcp.util import MCPToolCustomDataContext
from agents.run_context import RunContextWrapper
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp.types import CallToolResult, GetPromptResult, Implementation, ListPromptsResult, TextContent, Tool
from pydantic import ValidationError

from backend.conversations.records import UNKNOWN_OUTCOME
from backend.errors import BackendError, LimitReached
from backend.tools.caller_token import calling_for
from backend.tools.run_context import RunContext
from common import VERSION
from common.telemetry import metrics, traces
from common.tls import get_tls_context
from common.tokens import BACKEND

logger = logging.getLogger(__name__)

T = TypeVar("T")

UNREADABLE = "The call was not made: its arguments are not a JSON object. Call the tool again with valid arguments."
PROTOCOL = "2026-07-28"  # one request per exchange: no handshake, so nothing to lose in a restart
USER = "todo/user_id"
DIRECTORY = "todo/directory"
"""The directory of the user's in which the workspace works instead of the folder; it is sent in the token."""
KEY = "todo/idempotency_key"
REJECTION = "todo/refusal"
"""Why a call failed, in the metadata of its result; "unavailable" tells that it may have been carried out."""
CLIENT = Implementation(name="todo-assistant", version=VERSION)
_UNAVAILABLE, _LIMITED = -32050, -32051
_FIRST_PAUSE_SECONDS, _MAX_PAUSE_SECONDS = 0.05, 0.2
_NEVER_SENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)


class ToolsUnavailable(BackendError):
    """The tools cannot be reached right now. What was done so far is kept; try again in a moment."""

    code, status = "tools_unavailable", 503
    allow_retry = True


class FailedOutput(str):
    """What a model reads of a call that failed."""


class McpConnection(MCPServer):
    """The tools of an MCP server, and `http` for its other routes.

    A request without a usable answer is sent again for `resend_seconds`, then `unavailable` is raised. A tool call that
    may have reached the server is sent again only with `idempotent_calls`. A server that says nothing for
    `answer_seconds` has stopped.
    """

    unavailable: ClassVar[type[ToolsUnavailable]] = ToolsUnavailable

    def __init__(
        self,
        name: str,
        url: str,
        *,
        resend_seconds: float,
        answer_seconds: float,
        auth: httpx2.Auth | None,
        http_timeout: httpx2.Timeout,
        http_connections: int | None = None,
        idempotent_calls: bool = False,
    ) -> None:
        super().__init__(
            tool_meta_resolver=self._resolve_meta,
            custom_data_extractor=_store_result,
            failure_error_function=_failure_for_model,
        )
        self._name = name
        self.url = url
        self._mcp_http = _ResendingClient(
            resend_seconds,
            resends_calls=idempotent_calls,
            auth=auth,
            headers={"accept-encoding": "identity"},
            limits=httpx2.Limits(max_connections=100, keepalive_expiry=30),
            timeout=httpx2.Timeout(answer_seconds, connect=5),
            trust_env=False,
            verify=get_tls_context(),
        )
        self._client = Client(
            streamable_http_client(url, http_client=self._mcp_http),
            mode=PROTOCOL,
            cache=None,
            client_info=CLIENT,
            read_timeout_seconds=2 * answer_seconds + resend_seconds,
        )
        self.http = httpx2.AsyncClient(
            base_url=url.rstrip("/").removesuffix("/mcp"),
            auth=auth,
            limits=httpx2.Limits(max_connections=http_connections, keepalive_expiry=30),
            timeout=http_timeout,
            trust_env=False,
            verify=get_tls_context(),
        )
        self.stack = AsyncExitStack()
        self._tools: list[Tool] = []

    @property
    def name(self) -> str:
        return self._name

    async def connect(self) -> None:
        """Opens the connection pools. Nothing is sent, so this works while the server is down."""
        for client in (self._mcp_http, self._client, self.http):
            await self.stack.enter_async_context(client)
        self._client.session.validate_tool_result = _accept_result

    async def cleanup(self) -> None:
        await self.stack.aclose()

    def render_meta(self, run: RunContext) -> dict[str, Any]:
        """What is sent with each call of a run, apart from its user and its key."""
        raise NotImplementedError

    def _resolve_meta(self, context: MCPToolMetaContext) -> dict[str, Any]:
        run: RunContext = context.run_context.context
        call_id = context.run_context.tool_call_id  # pyright: ignore[reportAttributeAccessIssue] - a ToolContext
        return {USER: run.user_id, KEY: run.open_calls[call_id].idempotency_key, **self.render_meta(run)}

    async def list_tools(
        self, run_context: RunContextWrapper[Any] | None = None, agent: AgentBase[Any] | None = None
    ) -> list[Tool]:
        """Returns the tools that were read last; asks the server only the first time. Raises `unavailable`."""
        return self._tools or await self.refresh()

    async def refresh(self) -> list[Tool]:
        try:
            with calling_for(BACKEND):  # the tools are the same for all users
                listed = await self._send(self._client.list_tools())
        except (MCPError, ValidationError, LimitReached) as error:  # it is no limit of a user
            raise self.unavailable from error
        self._tools = [self.adapt_tool(tool) for tool in listed.tools]
        return self._tools

    def adapt_tool(self, tool: Tool) -> Tool:
        return tool

    async def call_tool(
        self, tool_name: str, arguments: dict[str, Any] | None, meta: dict[str, Any] | None = None
    ) -> CallToolResult:
        """Calls a tool once, as the user that `meta` names; raises `unavailable`, and `MCPError` of the server."""
        meta = dict(meta or {})
        span = traces.span(f"tools/call {tool_name}", {"gen_ai.tool.name": tool_name}, kind="CLIENT")
        with calling_for(meta.pop(USER), meta.pop(DIRECTORY, None)), span:
            return await self._send(self._client.call_tool(tool_name, arguments, meta=meta))  # pyright: ignore[reportArgumentType]

    async def list_prompts(self) -> ListPromptsResult:
        return ListPromptsResult(prompts=[])

    async def get_prompt(self, name: str, arguments: dict[str, Any] | None = None) -> GetPromptResult:
        raise NotImplementedError("Prompts of MCP servers are not used.")

    async def _send(self, request: Awaitable[T]) -> T:
        try:
            return await request
        except MCPError as error:
            if error.code == _UNAVAILABLE:
                raise self.unavailable from error
            if error.code == _LIMITED:
                raise LimitReached(error.message) from error
            raise


async def _accept_result(name: str, result: CallToolResult) -> None:
    """Replaces the check of a result against the tool's schema in mcp 2.3, which is written in Python.

    It holds the event loop for 17 ms if the result is 100 tasks. The servers are our own, and whoever uses a structured
    result validates what it needs of it. tests/event_loop
    """


def read_limit(response: httpx2.Response) -> LimitReached:
    """Reads the sentence of a response with the status 429, and when to try again."""
    try:
        error = response.json()["error"]
        sentence = error["message"] if isinstance(error, dict) else error
    except (ValueError, LookupError, TypeError):
        sentence = None
    retry = response.headers.get("retry-after", "")
    return LimitReached(
        *[sentence] if isinstance(sentence, str) else [], retry_seconds=int(retry) if retry.isdecimal() else None
    )


def text_of(result: CallToolResult) -> str:
    return "\n".join(part.text for part in result.content if isinstance(part, TextContent))


def _store_result(context: MCPToolCustomDataContext) -> None:
    """Notes a call's structured result, and whether it failed, to be recorded; the model reads only the text."""
    run_context: Any = context.run_context
    call = run_context.context.open_calls[run_context.tool_call_id]
    call.details = dict(context.structured_content) if context.structured_content else None
    if context.is_error:
        call.state = "failed"
        if (context.result_meta or {}).get(REJECTION) == "unavailable":
            run_context.context.unconfirmed.add(call.id)


def _failure_for_model(context: RunContextWrapper[Any], error: Exception) -> FailedOutput:
    """Returns the sentence that the model reads when a call fails; raises `ToolsUnavailable`, which ends the run."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ToolsUnavailable):
            raise cause
        if isinstance(cause, LimitReached):  # so the call was not made
            return FailedOutput(str(cause))
        cause = cause.__cause__
    logger.warning("tool call failed: %s", type(error).__name__)
    if isinstance(error, ModelBehaviorError):
        return FailedOutput(UNREADABLE)
    run_context: Any = context
    run_context.context.unconfirmed.add(run_context.tool_call_id)
    return FailedOutput(UNKNOWN_OUTCOME)


class _ResendingClient(httpx2.AsyncClient):
    """Returns a response instead of raising an error, because one error closes an MCP session for ever.

    A request without a usable answer is sent again for `resend_seconds`; a tool call that may have been carried out
    only with `resends_calls`, for a server that carries out a call with the same idempotency key once.
    """

    def __init__(self, resend_seconds: float, *, resends_calls: bool, **options: Any) -> None:
        super().__init__(**options)
        self._resend_seconds = resend_seconds
        self._resends_calls = resends_calls

    async def send(self, request: httpx2.Request, **_: Any) -> httpx2.Response:
        """Returns the server's response, or a 503 with the MCP error `_UNAVAILABLE` or `_LIMITED`; it never raises."""
        request.headers.update(traces.headers())
        is_idempotent = self._resends_calls or request.headers.get("mcp-method") != "tools/call"
        now = asyncio.get_running_loop().time
        deadline, pause = now() + self._resend_seconds, _FIRST_PAUSE_SECONDS
        while True:
            may_repeat = is_idempotent
            try:
                response = await super().send(request)
                if response.status_code == 429:
                    return _create_error(request, _LIMITED, str(read_limit(response)))
                if (fault := _find_fault(response)) is None:
                    return response
            except Exception as error:  # noqa: BLE001 - whatever fails, the session stays open
                fault = type(error).__name__
                may_repeat = may_repeat and not isinstance(error, httpx2.ReadTimeout)
                may_repeat = may_repeat or isinstance(error, _NEVER_SENT)
            if not may_repeat or now() >= deadline:
                logger.error("no answer from %s: %s", request.url.host, fault)
                return _create_error(request, _UNAVAILABLE, "unavailable")
            metrics.RETRIES.labels("tools").inc()
            await asyncio.sleep(pause)
            pause = min(2 * pause, _MAX_PAUSE_SECONDS)


def _create_error(request: httpx2.Request, code: int, message: str) -> httpx2.Response:
    body = {"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": message}}
    return httpx2.Response(503, json=body, request=request)


def _find_fault(response: httpx2.Response) -> str | None:
    """Returns why a response is not the MCP server's own, or None; the content of an event stream is not checked."""
    status, kind = response.status_code, response.headers.get("content-type", "")
    if status >= 500:
        return f"status {status}"
    if status < 300 and not kind.startswith("text/event-stream"):
        try:
            json.loads(response.content)
        except ValueError:
            kind = ""
        if not kind.startswith("application/json"):
            return f"status {status} without JSON"
    return None
