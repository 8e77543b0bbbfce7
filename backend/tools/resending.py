"""Asking a service of ours until it answers: it may be starting again, or a proxy may stand in its place."""

import asyncio
import json
import logging
from typing import Any

import httpx2

from common.telemetry import metrics, traces

logger = logging.getLogger(__name__)

UNAVAILABLE = -32050
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 0.2  # seconds
_NEVER_SENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)


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
        request.headers.update(traces.headers())
        is_idempotent = self._resends_calls or request.headers.get("mcp-method") != "tools/call"
        now = asyncio.get_running_loop().time
        deadline, pause = now() + self._resend_seconds, _FIRST_PAUSE
        while True:
            may_repeat = is_idempotent
            try:
                response = await super().send(request)
                if (fault := _find_fault(response)) is None:
                    return response
            except Exception as error:  # noqa: BLE001 - whatever fails, the session stays open
                fault = type(error).__name__
                may_repeat = may_repeat and not isinstance(error, httpx2.ReadTimeout)
                may_repeat = may_repeat or isinstance(error, _NEVER_SENT)
            if not may_repeat or now() >= deadline:
                logger.error("no answer from %s: %s", request.url.host, fault)
                body = {"jsonrpc": "2.0", "id": None, "error": {"code": UNAVAILABLE, "message": "unavailable"}}
                return httpx2.Response(503, json=body, request=request)
            metrics.RETRIES.labels("tools").inc()
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
