"""Asking a service of ours until it answers: it may be starting again, or a proxy may stand in its place."""

import asyncio
import itertools
import json
import logging
from typing import Any, NamedTuple

import httpx2

from common.telemetry import metrics, request_id, traces

logger = logging.getLogger(__name__)

UNAVAILABLE = -32050
_PAUSES = (0.05, 0.1, 0.2)
_NEVER_SENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)


def tracing_headers() -> dict[str, str]:
    asked = request_id.current.get()
    return traces.headers() | ({} if asked is None else {request_id.HEADER: asked})


def _find_fault(status: int, kind: str, body: bytes) -> str | None:
    """Returns why a response is not the MCP server's own, or None; the content of an event stream is not checked."""
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
    """HTTP that answers instead of raising, because one raised error closes an MCP session for ever.

    A request without a usable answer is sent again for `resend_seconds`; a tool call that may have been carried out
    only with `resends_calls`, for a server that carries out a call with the same idempotency key once.
    """

    def __init__(self, resend_seconds: float, *, resends_calls: bool, **options: Any) -> None:
        super().__init__(**options)
        self._resend_seconds = resend_seconds
        self._resends_calls = resends_calls

    async def send(self, request: httpx2.Request, **_: Any) -> httpx2.Response:
        """Returns the server's response, or a 503 with the MCP error `UNAVAILABLE`; it never raises."""
        request.headers.update(tracing_headers())
        may_repeat = self._resends_calls or request.headers.get("mcp-method") != "tools/call"
        now = asyncio.get_running_loop().time
        deadline = now() + self._resend_seconds
        for attempt in itertools.count():
            answer = await self._send_once(request, may_repeat=may_repeat)
            if isinstance(answer, httpx2.Response):
                return answer
            if not answer.may_repeat or now() >= deadline:
                logger.error("no answer from %s: %s", request.url.host, answer.fault)
                return _unavailable(request)
            metrics.RETRIES.labels("tools").inc()
            await asyncio.sleep(_PAUSES[min(attempt, len(_PAUSES) - 1)])
        raise AssertionError

    async def _send_once(self, request: httpx2.Request, *, may_repeat: bool) -> "httpx2.Response | _Failure":
        try:
            response = await super().send(request)
        except Exception as error:  # noqa: BLE001 - whatever fails, the session stays open
            never_sent = isinstance(error, _NEVER_SENT)
            return _Failure(
                type(error).__name__, never_sent or (may_repeat and not isinstance(error, httpx2.ReadTimeout))
            )
        fault = _find_fault(response.status_code, response.headers.get("content-type", ""), response.content)
        return response if fault is None else _Failure(fault, may_repeat)


class _Failure(NamedTuple):
    """Why an attempt had no usable answer, and whether the request may be sent again."""

    fault: str
    may_repeat: bool


def _unavailable(request: httpx2.Request) -> httpx2.Response:
    body = {"jsonrpc": "2.0", "id": None, "error": {"code": UNAVAILABLE, "message": "unavailable"}}
    return httpx2.Response(
        503, headers={"content-type": "application/json"}, content=json.dumps(body).encode(), request=request
    )
