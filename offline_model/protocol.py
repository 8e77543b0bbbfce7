"""OpenAI's chat-completions protocol: the request, the response as one object or as chunks, and errors."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from time import time
from typing import Annotated, Any, Literal
from uuid import uuid4

from pydantic import BaseModel, BeforeValidator, Field, ValidationError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse

MODEL = "offline-rules"
MAX_OBJECTS = 5_000  # objects and arrays, which determine how long parsing blocks other requests
TOO_LARGE = f"The request is larger than I read: at most {MAX_OBJECTS:,} objects and lists. Begin a new conversation."


def _join_content(content: Any) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    if not isinstance(content, list) or not all(isinstance(part, dict) for part in content):
        raise ValueError("content should be a string or a list of parts")
    texts = [part.get("text") for part in content]
    return "\n".join(text for text in texts if isinstance(text, str))


_FIRST_ERROR = Field(fail_fast=True)
Content = Annotated[str, BeforeValidator(_join_content)]


class Function(BaseModel):
    name: str
    arguments: str = "{}"


class FunctionCall(BaseModel):
    """A function that is offered or called."""

    id: str | None = None
    function: Function


class ChatMessage(BaseModel):
    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: Content = ""
    tool_calls: Annotated[list[FunctionCall], _FIRST_ERROR] | None = None
    tool_call_id: str | None = None


class CompletionRequest(BaseModel):
    model: str = MODEL
    messages: Annotated[list[ChatMessage], Field(min_length=1), _FIRST_ERROR]
    tools: Annotated[list[FunctionCall], _FIRST_ERROR] | None = None
    stream: bool | None = None
    stream_options: dict[str, Any] | None = None
    max_tokens: Annotated[int, Field(ge=1)] | None = None
    max_completion_tokens: Annotated[int, Field(ge=1)] | None = None
    characters: int = 0
    """How long the prompt is; `parse_request` sets it."""

    @property
    def include_usage(self) -> bool:
        return not self.stream or bool((self.stream_options or {}).get("include_usage"))

    @property
    def tool_names(self) -> frozenset[str]:
        return frozenset(tool.function.name for tool in self.tools or ())


def parse_request(raw: bytes) -> CompletionRequest:
    if raw.count(b"{") + raw.count(b"[") > MAX_OBJECTS:
        raise HTTPException(413, TOO_LARGE)
    try:
        chat = CompletionRequest.model_validate_json(raw)
    except ValidationError as error:
        raise HTTPException(400, render_error(error)) from error
    chat.characters = len(raw)
    return chat


def render_error(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_context=False)[0]
    where = ".".join(map(str, first["loc"]))
    message = first["msg"].removeprefix("Value error, ")
    return f"{where}: {message}." if where else f"{message}."


def create_error_response(status: int, message: str, headers: Mapping[str, str]) -> JSONResponse:
    error = {"message": message, "type": "invalid_request_error", "param": None, "code": None}
    return JSONResponse({"error": error}, status, headers)


def split_tokens(text: str) -> list[str]:
    return re.findall(r"\s*\S+|\s+", text)


@dataclass(frozen=True)
class CompletionCall:
    name: str
    arguments: str
    id: str = field(default_factory=lambda: f"call_{uuid4().hex[:24]}")

    def as_object(self, arguments: str) -> dict[str, Any]:
        return {"id": self.id, "type": "function", "function": {"name": self.name, "arguments": arguments}}


@dataclass(frozen=True, kw_only=True)
class Completion:
    model: str
    text: str
    calls: Sequence[CompletionCall]
    finish_reason: str | None
    usage: dict[str, Any] | None
    pieces: Callable[[str], Iterable[str]] = split_tokens
    id: str = field(default_factory=lambda: f"chatcmpl-{uuid4().hex}")
    created: int = field(default_factory=lambda: int(time()))

    def as_object(self) -> dict[str, Any]:
        calls = {"tool_calls": [call.as_object(call.arguments) for call in self.calls]} if self.calls else {}
        message = {"role": "assistant", "content": self.text or None} | calls
        choice = {"index": 0, "message": message, "finish_reason": self.finish_reason}
        return self._envelope("chat.completion", [choice]) | ({"usage": self.usage} if self.usage else {})

    def as_events(self) -> Iterator[str]:
        for chunk in self.chunks():
            yield f"data: {json.dumps(chunk, separators=(',', ':'))}\n\n"
        yield "data: [DONE]\n\n"

    def chunks(self) -> Iterator[dict[str, Any]]:
        yield self.chunk({"role": "assistant", "content": "" if self.text else None})
        for piece in self.pieces(self.text):
            yield self.chunk({"content": piece})
        for index, call in enumerate(self.calls):
            yield self.chunk({"tool_calls": [{"index": index} | call.as_object("")]})
            for piece in self.pieces(call.arguments):
                yield self.chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
        if self.finish_reason is not None:
            yield self.chunk({}, self.finish_reason)
        if self.usage:
            yield self._envelope("chat.completion.chunk", []) | {"usage": self.usage}

    def chunk(self, delta: dict[str, Any], finish_reason: str | None = None) -> dict[str, Any]:
        return self._envelope("chat.completion.chunk", [{"index": 0, "delta": delta, "finish_reason": finish_reason}])

    def _envelope(self, kind: str, choices: list[dict[str, Any]]) -> dict[str, Any]:
        return {"id": self.id, "object": kind, "created": self.created, "model": self.model, "choices": choices}


def estimate_usage(prompt_characters: int, text: str, calls: Iterable[CompletionCall]) -> dict[str, int]:
    """Estimates four characters for each token."""
    texts = [text, *(call.name + call.arguments for call in calls)]
    prompt, answer = (-(-characters // 4) for characters in (prompt_characters, sum(map(len, texts))))
    return {"prompt_tokens": prompt, "completion_tokens": answer, "total_tokens": prompt + answer}
