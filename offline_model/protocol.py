"""The part of the chat-completions request that the offline model reads, and OpenAI's error envelope."""

import json
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from starlette.responses import JSONResponse

MODEL = "offline-rules"


class NotJson(Exception):
    """The body is not valid JSON."""


def _text_of(content: Any) -> str:
    """The text of a message's content, which may be a string, a list of parts or null."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if not isinstance(content, list) or not all(isinstance(part, dict) for part in content):
        raise ValueError("content should be a string or a list of parts")
    texts = [part.get("text") for part in content]
    return "\n".join(text for text in texts if isinstance(text, str))


Text = Annotated[str, BeforeValidator(_text_of)]


class Function(BaseModel):
    name: str
    arguments: str = "{}"


class FunctionCall(BaseModel):
    id: str | None = None
    function: Function


class Message(BaseModel):
    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: Text = ""
    tool_calls: list[FunctionCall] | None = None
    tool_call_id: str | None = None


class ToolFunction(BaseModel):
    model_config = ConfigDict(extra="allow")

    name: str


class Tool(BaseModel):
    function: ToolFunction


class StreamOptions(BaseModel):
    include_usage: bool | None = None


class ChatRequest(BaseModel):
    model: str = MODEL
    messages: Annotated[list[Message], Field(min_length=1)]
    tools: list[Tool] | None = None
    tool_choice: str | dict[str, Any] | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    max_tokens: Annotated[int, Field(ge=1)] | None = None
    max_completion_tokens: Annotated[int, Field(ge=1)] | None = None

    @property
    def token_limit(self) -> int | None:
        return self.max_completion_tokens or self.max_tokens

    @property
    def include_usage(self) -> bool:
        return not self.stream or bool(self.stream_options and self.stream_options.include_usage)

    @property
    def tool_names(self) -> frozenset[str]:
        """The tools that may be called in the answer."""
        offered = frozenset(tool.function.name for tool in self.tools or ())
        if self.tool_choice == "none":
            return frozenset()
        return offered if self._chosen_tool is None else offered & {self._chosen_tool}

    @property
    def _chosen_tool(self) -> str | None:
        function = self.tool_choice.get("function") if isinstance(self.tool_choice, dict) else None
        return str(function.get("name")) if isinstance(function, dict) else None

    @property
    def must_call(self) -> bool:
        return self.tool_choice == "required" or self._chosen_tool is not None

    @property
    def last_user_text(self) -> str:
        return next((message.content for message in reversed(self.messages) if message.role == "user"), "")

    @property
    def characters(self) -> int:
        """How long the prompt is."""
        return len(self.model_dump_json(include={"messages", "tools"}))


def parsed(raw: bytes) -> Any:
    try:
        value = json.loads(raw)
        if b"\\u" in raw:
            json.dumps(value, ensure_ascii=False).encode()  # half of a surrogate pair is no text
    except (ValueError, RecursionError) as error:
        raise NotJson from error
    return value


def sentence_of(error: ValidationError) -> str:
    """The first of the validation's complaints as one sentence."""
    first = error.errors(include_url=False, include_context=False)[0]
    where = ".".join(str(step) for step in first["loc"])
    message = first["msg"].removeprefix("Value error, ")
    return f"{where}: {message}." if where else f"{message}."


def error_response(status: int, message: str, *, kind: str = "invalid_request_error") -> JSONResponse:
    return JSONResponse({"error": {"message": message, "type": kind, "param": None, "code": None}}, status)
