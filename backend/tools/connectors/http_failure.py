"""Passes on the HTTP status with which another MCP server rejects a request, which the SDK (mcp 2.3) drops."""

import json
from dataclasses import asdict, dataclass
from typing import Any, Self

import httpx2
from mcp.shared.exceptions import MCPError
from mcp.types import INTERNAL_ERROR

_KEY = "http"
_MAX_WORDS = 500
_PASSING = (429, 500, 502, 503, 504)
_MAX_WAIT_SECONDS, _WAIT_SECONDS = 5.0, 1.0
_KEY_CURE = ", so its operator has to check the key and the address in mcp.json"


@dataclass(frozen=True)
class HttpFailure:
    status: int
    has_lost_session: bool
    """Whether the server no longer knows the session of the request, and so has not carried it out."""
    wait_seconds: float

    @property
    def is_passing(self) -> bool:
        return self.status in _PASSING

    @property
    def may_have_acted(self) -> bool:
        return self.status >= 500

    def __str__(self) -> str:
        return f" with the HTTP status {self.status}{_KEY_CURE if self.status in (401, 403) else ''}"

    @classmethod
    def of(cls, error: MCPError) -> Self | None:
        match error.error.data:
            case {"http": {"status": int(status), "has_lost_session": bool(is_lost), "wait_seconds": float(wait)}}:
                return cls(status, is_lost, wait)
            case _:
                return None


async def keep_status(response: httpx2.Response) -> None:
    """Puts the status of a rejected request for tools into its JSON-RPC error, as a hook of the HTTP client."""
    if response.status_code < 400 or b'"tools/' not in response.request.content:
        return
    stream = response.stream
    assert isinstance(stream, httpx2.AsyncByteStream)
    body = b"".join([chunk async for chunk in stream])
    await stream.aclose()
    error = _parse_error(body)
    words = error["message"]
    has_session = "mcp-session-id" in response.request.headers
    is_lost = has_session and (
        response.status_code in (404, 410) or (response.status_code < 500 and "session" in words.lower())
    )
    failure = HttpFailure(response.status_code, is_lost, _parse_wait(response.headers.get("retry-after", "")))
    error = {**error, "data": {_KEY: asdict(failure)}}
    response.stream = httpx2.ByteStream(json.dumps({"jsonrpc": "2.0", "id": 0, "error": error}).encode())
    response.headers["content-type"] = "application/json"


def _parse_error(body: bytes) -> dict[str, Any]:
    """Returns a JSON-RPC error, or one with the words of another body that is no web page."""
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        text = body[:_MAX_WORDS].decode(errors="replace").strip()
        return {"code": INTERNAL_ERROR, "message": "" if text.startswith("<") else text}
    error = value.get("error", value) if isinstance(value, dict) else value
    match error:
        case {"code": int(code), "message": str(message)}:
            return {"code": code, "message": message[:_MAX_WORDS]}
        case {"message": str(message)} | {"error_description": str(message)} | {"detail": str(message)} | str(message):
            return {"code": INTERNAL_ERROR, "message": message[:_MAX_WORDS]}
        case _:
            return {"code": INTERNAL_ERROR, "message": ""}


def _parse_wait(retry_after: str) -> float:
    seconds = float(retry_after) if retry_after.isascii() and retry_after.isdecimal() else _WAIT_SECONDS
    return min(seconds, _MAX_WAIT_SECONDS)
