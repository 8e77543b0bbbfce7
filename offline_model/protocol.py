"""The part of the chat-completions request that the offline model reads, and OpenAI's error envelope."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, Field, ValidationError
from starlette.responses import JSONResponse

MODEL = "offline-rules"
MAX_OBJECTS = 5_000  # and arrays: what reading takes is told by their number, and others wait meanwhile
TOO_LARGE = f"The request is larger than I read: at most {MAX_OBJECTS:,} objects and lists. Begin a new conversation."


class Refused(Exception):
    """Its arguments are the status and a sentence."""


def _text_of(content: Any) -> str:
    """The text of a message's content, which may be a string, a list of parts or null."""
    if content is None or isinstance(content, str):
        return content or ""
    if not isinstance(content, list) or not all(isinstance(part, dict) for part in content):
        raise ValueError("content should be a string or a list of parts")
    texts = [part.get("text") for part in content]
    return "\n".join(text for text in texts if isinstance(text, str))


_FIRST_ERROR = Field(fail_fast=True)
Text = Annotated[str, BeforeValidator(_text_of)]


class Function(BaseModel):
    name: str
    arguments: str = "{}"


class Tool(BaseModel):
    """One that is offered, chosen or called."""

    id: str | None = None
    function: Function


class Message(BaseModel):
    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: Text = ""
    tool_calls: Annotated[list[Tool], _FIRST_ERROR] | None = None
    tool_call_id: str | None = None


class ChatRequest(BaseModel):
    model: str = MODEL
    messages: Annotated[list[Message], Field(min_length=1), _FIRST_ERROR]
    tools: Annotated[list[Tool], _FIRST_ERROR] | None = None
    tool_choice: str | Tool | None = None
    stream: bool | None = None
    stream_options: dict[str, Any] | None = None
    max_tokens: Annotated[int, Field(ge=1)] | None = None
    max_completion_tokens: Annotated[int, Field(ge=1)] | None = None
    characters: int = 0
    """How long the prompt is; `read` sets it."""

    @property
    def include_usage(self) -> bool:
        return not self.stream or bool((self.stream_options or {}).get("include_usage"))

    @property
    def tool_names(self) -> frozenset[str]:
        """The tools that may be called in the answer."""
        offered = frozenset(tool.function.name for tool in self.tools or ())
        if isinstance(self.tool_choice, Tool):
            return offered & {self.tool_choice.function.name}
        return frozenset() if self.tool_choice == "none" else offered

    @property
    def must_call(self) -> bool:
        return self.tool_choice == "required" or isinstance(self.tool_choice, Tool)


def read(raw: bytes) -> ChatRequest:
    if raw.count(b"{") + raw.count(b"[") > MAX_OBJECTS:
        raise Refused(413, TOO_LARGE)
    try:
        chat = ChatRequest.model_validate_json(raw)
    except ValidationError as error:
        raise Refused(400, sentence_of(error)) from error
    chat.characters = len(raw)
    return chat


def sentence_of(error: ValidationError) -> str:
    """The first of the validation's complaints."""
    first = error.errors(include_url=False, include_context=False)[0]
    if first["type"] == "json_invalid":
        return "The body is not valid JSON."
    where = ".".join(map(str, first["loc"]))
    message = first["msg"].removeprefix("Value error, ")
    return f"{where}: {message}." if where else f"{message}."


def error_response(status: int, message: str) -> JSONResponse:
    error = {"message": message, "type": "invalid_request_error", "param": None, "code": None}
    return JSONResponse({"error": error}, status)
