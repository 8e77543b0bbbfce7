"""What is particular in the answers of each provider: their errors, and the chunks of their streams."""

import json
from collections.abc import Callable, Iterator
from typing import Any

Json = dict[str, Any]


def _flat(message: str, status: int) -> Json:
    kind, code = {
        400: ("invalid_request_error", "wrong_api_format"),
        429: ("too_many_requests_error", "request_quota_exceeded"),
    }.get(status, ("server_error", "overloaded"))
    return {"message": message, "type": kind, "param": "quota", "code": code}


def _enveloped(message: str, status: int) -> Json:
    return {"error": _flat(message, status)}


def _numbered(message: str, status: int) -> Json:
    return {"error": {"code": status, "message": message, "metadata": {"provider_name": "somebody"}}}


def error(provider: str, message: str, status: int) -> Json:
    return {"cerebras": _flat, "openrouter": _numbered}.get(provider, _enveloped)(message, status)


def failing_midway(provider: str) -> str:
    """The frame by which a stream that has begun ends."""
    told = error(provider, "overloaded", 503)
    if provider == "openrouter":
        told |= {"id": "gen", "choices": [{"index": 0, "delta": {"content": ""}, "finish_reason": "error"}]}
    return f"data: {json.dumps(told)}\n\n"


def lose_calls(answer: Json) -> None:
    """As several servers of local models did: it ends with nothing called."""
    for choice in answer["choices"]:
        choice["delta"].pop("tool_calls", None)
        if choice["finish_reason"] == "tool_calls":
            choice["finish_reason"] = "stop"


def _repeat_ids(answer: Json) -> None:
    for said in _said(answer):
        for call in said.get("tool_calls") or ():
            call |= {"id": "call_1"} if "id" in call else {}


def _keep_thoughts(answer: Json) -> None:
    for said in _said(answer):
        for name in ("reasoning", "reasoning_content"):
            said.pop(name, None)


def _said(answer: Json) -> Iterator[Json]:
    return (choice.get("delta") or choice.get("message") or {} for choice in answer["choices"])


CHANGES: dict[str, Callable[[Json], None]] = {"ollama": _repeat_ids, "anthropic": _keep_thoughts}
BEFORE = {"openrouter": ": OPENROUTER PROCESSING\n\n"}  # comments that keep the connection alive
