"""Asking a service of ours until it answers: it may be starting again, or a proxy may stand in its place."""

import asyncio
import itertools
import json
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, TypeVar

import httpx2

from service.telemetry import metrics, request_id, traces

logger = logging.getLogger(__name__)

T = TypeVar("T")

UNAVAILABLE = -32050
_PAUSES = (0.05, 0.1, 0.2)
_NEVER_SENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)


class NoAnswer(Exception):
    """Nothing of use came back; `again` tells whether the same may be asked once more."""

    def __init__(self, fault: str, *, again: bool) -> None:
        super().__init__(fault)
        self.again = again


async def answered(ask: Callable[[], Awaitable[T]], *, host: str | None, seconds: float) -> T:
    """What `ask` returns; raises its last `NoAnswer` where it may not be asked again, or was for so long."""
    now = asyncio.get_running_loop().time
    deadline = now() + seconds
    for attempt in itertools.count():
        try:
            return await ask()
        except NoAnswer as fault:
            if not fault.again or now() >= deadline:
                logger.error("no answer from %s: %s", host, fault)
                raise
        metrics.RETRIES.labels("tools").inc()
        await asyncio.sleep(_PAUSES[min(attempt, len(_PAUSES) - 1)])
    raise AssertionError


def watched() -> dict[str, str]:
    """What lets the server's lines and spans be found with ours."""
    asked = request_id.current.get()
    return traces.headers() | ({} if asked is None else {request_id.HEADER: asked})


def fault_of(status: int, kind: str, body: bytes) -> str | None:
    """Why this is not the MCP server's own answer, or None. A stream of events is looked at by who reads it."""
    if status >= 500:
        return f"status {status}"
    if status < 300 and not kind.startswith("text/event-stream"):
        try:
            json.loads(body)
        except ValueError:
            kind = ""
        if not kind.startswith("application/json"):
            return f"status {status} without JSON"
    return None


class ResendingClient(httpx2.AsyncClient):
    """HTTP that answers instead of raising, because one raised error closes an MCP session for ever."""

    def __init__(self, resend_seconds: float, **options: Any) -> None:
        super().__init__(**options)
        self._resend_seconds = resend_seconds

    async def send(self, request: httpx2.Request, **_: Any) -> httpx2.Response:
        """The server's answer, read to its end; one that only a proxy or a dying server gives counts as none."""
        request.headers.update(watched())
        may_repeat = request.headers.get("mcp-method") != "tools/call"  # which may have been carried out
        once = partial(self._once, request, may_repeat=may_repeat)
        try:
            return await answered(once, host=request.url.host, seconds=self._resend_seconds)
        except NoAnswer:
            return _unavailable(request)

    async def _once(self, request: httpx2.Request, *, may_repeat: bool) -> httpx2.Response:
        try:
            response = await super().send(request)
        except Exception as error:
            again = isinstance(error, _NEVER_SENT) or (may_repeat and not isinstance(error, httpx2.ReadTimeout))
            raise NoAnswer(type(error).__name__, again=again) from error
        fault = fault_of(response.status_code, response.headers.get("content-type", ""), response.content)
        if fault is not None:
            raise NoAnswer(fault, again=may_repeat)
        return response


def _unavailable(request: httpx2.Request) -> httpx2.Response:
    body = {"jsonrpc": "2.0", "id": None, "error": {"code": UNAVAILABLE, "message": "unavailable"}}
    return httpx2.Response(
        503, headers={"content-type": "application/json"}, content=json.dumps(body).encode(), request=request
    )
