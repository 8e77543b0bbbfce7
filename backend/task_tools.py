"""The connection to the MCP server: one for the process, for every person, and it heals itself."""

import asyncio
import itertools
import json
import logging
import time
from collections.abc import Awaitable, Callable, Generator
from contextlib import AsyncExitStack, suppress
from contextvars import ContextVar
from typing import Any, TypeVar

import httpx2
from agents import AgentBase
from agents.exceptions import ModelBehaviorError
from agents.mcp import MCPServer, MCPToolMetaContext
from agents.run_context import RunContextWrapper
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp.types import CallToolResult, GetPromptResult, Implementation, ListPromptsResult, Tool
from pydantic import ValidationError

from backend import reports
from backend.errors import NotCompleted, ToolsUnavailable
from backend.history import UNKNOWN_OUTCOME
from backend.tls import tls_context
from telemetry import request_id, traces
from tokens import make_token

logger = logging.getLogger(__name__)

T = TypeVar("T")

BACKEND_SUBJECT = "todo-assistant/backend"  # nobody's tasks: for requests outside of any turn
TOKEN_SECONDS = 300

_caller: ContextVar[str] = ContextVar("caller", default=BACKEND_SUBJECT)

PROTOCOL = "2026-07-28"  # one request per exchange: no handshake, so nothing to lose in a restart
USER = "todo/user_id"
KEY = "todo/idempotency_key"
ACTOR = "todo/actor"

_UNAVAILABLE = -32050
_PAUSES = (0.05, 0.1, 0.2)


class TaskTools(MCPServer):
    """The five task tools as the agent sees them: without `user_id`, which is added to each call from its turn."""

    def __init__(self, url: str, secret: str | None, *, resend_seconds: float) -> None:
        super().__init__(tool_meta_resolver=_call_meta, failure_error_function=_failure_for_model)
        self._url = url
        self._secret = secret
        self._resend_seconds = resend_seconds
        self._client: Client | None = None
        self._stack = AsyncExitStack()
        self._tools: list[Tool] | None = None

    @property
    def name(self) -> str:
        return "tasks"

    async def connect(self) -> None:
        """Open the connection's pool; nothing is sent, so this works while the server is down."""
        http = ResendingClient(
            self._resend_seconds,
            auth=CallerToken(self._secret, self._url) if self._secret else None,
            headers={"accept-encoding": "identity"},
            limits=httpx2.Limits(max_connections=100, keepalive_expiry=30),
            timeout=httpx2.Timeout(30, connect=5),
            trust_env=False,
            verify=tls_context(),
        )
        await self._stack.enter_async_context(http)
        self._client = await self._stack.enter_async_context(
            Client(
                streamable_http_client(self._url, http_client=http),
                mode=PROTOCOL,
                cache=None,
                client_info=Implementation(name="todo-assistant", version="1"),
                read_timeout_seconds=30 + self._resend_seconds,
            )
        )

    async def cleanup(self) -> None:
        await self._stack.aclose()
        self._client = None

    async def list_tools(
        self, run_context: RunContextWrapper[Any] | None = None, agent: AgentBase[Any] | None = None
    ) -> list[Tool]:
        if self._tools is None:
            await self.refresh()
        assert self._tools is not None
        return self._tools

    async def refresh(self) -> None:
        """Ask the server for its tools; without an answer of use, raises `ToolsUnavailable` and keeps the old list."""
        try:
            listed = await self._send(lambda client: client.list_tools())
        except (MCPError, ValidationError) as error:
            raise ToolsUnavailable from error
        self._tools = [_without_user_id(tool) for tool in listed.tools]

    async def prepare(self) -> None:
        """Ask for the tools, and check the schemas of their results now: the first result of each would wait for it."""
        await self.refresh()
        assert self._client is not None
        for tool in self._tools or ():
            with suppress(RuntimeError):  # this is no result of theirs
                await self._client.session.validate_tool_result(
                    tool.name, CallToolResult(content=[], structured_content={})
                )

    async def problem(self) -> str | None:
        """Why no tool could be called now, in one sentence, or None; answers within two seconds."""
        try:
            async with asyncio.timeout(1.5):
                await self.refresh()
        except (TimeoutError, ToolsUnavailable):
            shown = httpx2.URL(self._url).copy_with(userinfo=b"", query=None, fragment=None)
            return f"The MCP server does not answer at {shown}: check that it runs, and MCP_URL."
        return None

    async def call_tool(
        self, tool_name: str, arguments: dict[str, Any] | None, meta: dict[str, Any] | None = None
    ) -> CallToolResult:
        meta = dict(meta or {})
        user_id = meta.pop(USER)  # no turn, no call
        given = {key: value for key, value in (arguments or {}).items() if key != "user_id"}
        token = _caller.set(user_id)
        try:
            with traces.span(f"tools/call {tool_name}", {"gen_ai.tool.name": tool_name}, kind="CLIENT"):
                return await self._send(
                    lambda client: client.call_tool(tool_name, {"user_id": user_id, **given}, meta=meta)  # pyright: ignore[reportArgumentType]
                )
        finally:
            _caller.reset(token)

    async def complete_task(self, task_id: int, *, user_id: str, key: str) -> dict[str, Any]:
        """Complete a task that its person ticked, and return it as it is now; raises `NotCompleted`."""
        meta = {USER: user_id, KEY: key, ACTOR: "person"}
        result = await self.call_tool("complete_task", {"task_id": task_id}, meta)
        if result.is_error or result.structured_content is None:
            raise NotCompleted
        return result.structured_content

    async def list_prompts(self) -> ListPromptsResult:
        return ListPromptsResult(prompts=[])

    async def get_prompt(self, name: str, arguments: dict[str, Any] | None = None) -> GetPromptResult:
        raise NotImplementedError("The task server has no prompts.")

    async def _send(self, request: Callable[[Client], Awaitable[T]]) -> T:
        assert self._client is not None, "connect() comes first"
        try:
            return await request(self._client)
        except MCPError as error:
            if error.code == _UNAVAILABLE:
                raise ToolsUnavailable from error
            raise


def _without_user_id(tool: Tool) -> Tool:
    schema = dict(tool.input_schema)
    schema["properties"] = {name: spec for name, spec in schema.get("properties", {}).items() if name != "user_id"}
    schema["required"] = [name for name in schema.get("required", []) if name != "user_id"]
    return tool.model_copy(update={"input_schema": schema})


def _call_meta(context: MCPToolMetaContext) -> dict[str, Any]:
    turn = context.run_context.context
    call_id = context.run_context.tool_call_id  # pyright: ignore[reportAttributeAccessIssue] - a ToolContext in calls
    return {USER: turn.user_id, KEY: turn.call_keys[call_id], ACTOR: "assistant"}


def _failure_for_model(context: RunContextWrapper[Any], error: Exception) -> str:
    """The sentence the model reads when a call fails; an unreachable server ends the turn instead."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ToolsUnavailable):
            raise cause
        cause = cause.__cause__
    logger.warning("tool call failed: %s", type(error).__name__)
    if not isinstance(error, ModelBehaviorError):
        return UNKNOWN_OUTCOME
    return "The call was not made: its arguments are not a JSON object. Call the tool again with valid arguments."


class CallerToken(httpx2.Auth):
    """Signs each request for the person it is made for; the caller's own token is never passed on."""

    def __init__(self, secret: str, audience: str) -> None:
        self._secret = secret
        self._audience = audience

    def auth_flow(self, request: httpx2.Request) -> Generator[httpx2.Request, httpx2.Response, None]:
        expires = int(time.time()) + TOKEN_SECONDS
        token = make_token(self._secret, _caller.get(), audience=self._audience, expires=expires)
        request.headers["Authorization"] = f"Bearer {token}"
        yield request


class ResendingClient(httpx2.AsyncClient):
    """HTTP that answers instead of raising, because one raised error closes an MCP session for ever.

    Every request here may be sent again: reads change nothing, and changes carry an idempotency key.
    """

    def __init__(self, resend_seconds: float, **options: Any) -> None:
        super().__init__(**options)
        self._resend_seconds = resend_seconds

    async def send(self, request: httpx2.Request, **_: Any) -> httpx2.Response:
        """The server's answer, read to its end; one that only a proxy or a dying server gives counts as none."""
        request.headers.update(_watched())
        now = asyncio.get_running_loop().time
        deadline = now() + self._resend_seconds
        for attempt in itertools.count():
            try:
                response = await super().send(request)
            except Exception as error:  # noqa: BLE001 - the edge that must not raise
                fault = type(error).__name__
            else:
                if (fault := _fault(response)) is None:
                    return response
            if now() >= deadline:
                logger.error("task service unreachable: %s", fault)
                break
            reports.RETRIES.labels("tools").inc()
            await asyncio.sleep(_PAUSES[min(attempt, len(_PAUSES) - 1)])
        return _unavailable(request)


def _watched() -> dict[str, str]:
    """What lets the task service's lines and spans be found with ours."""
    asked = request_id.current.get()
    return traces.headers() | ({} if asked is None else {request_id.HEADER: asked})


def _fault(response: httpx2.Response) -> str | None:
    """Why this is not the MCP server's own answer, or None."""
    if response.status_code >= 500:
        return f"status {response.status_code}"
    if response.is_success and not _is_json(response):
        return f"status {response.status_code} without JSON"
    return None


def _is_json(response: httpx2.Response) -> bool:
    try:
        json.loads(response.content)
    except ValueError:
        return False
    return response.headers.get("content-type", "").startswith("application/json")


def _unavailable(request: httpx2.Request) -> httpx2.Response:
    body = {"jsonrpc": "2.0", "id": None, "error": {"code": _UNAVAILABLE, "message": "unavailable"}}
    return httpx2.Response(
        503, headers={"content-type": "application/json"}, content=json.dumps(body).encode(), request=request
    )
