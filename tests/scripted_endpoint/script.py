"""The steps that a test has scripted; each is used for one response."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from offline_model.protocol import Completion, CompletionCall, CompletionRequest, estimate_usage, split_tokens

Seconds = Annotated[float, Field(ge=0)]
Frames = Annotated[int, Field(ge=0)]
_CHARS_PER_TOKEN = 4  # as `estimate_usage` counts
_OF_CONVERSATIONS = ("Summarise ", "Write a title ")
"""How requests begin that follow an answer at any time: they take no step that is meant for the next answer."""


class ScriptedCall(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: str
    arguments: dict[str, Any] | str = Field(default_factory=dict, description="A string is sent as it is, JSON or not.")
    id: str | None = Field(default=None, description="A unique one if left out; null sends none.")

    def as_call(self) -> CompletionCall:
        arguments = self.arguments if isinstance(self.arguments, str) else json.dumps(self.arguments)
        if "id" not in self.model_fields_set:
            return CompletionCall(self.name, arguments)
        return CallWithoutId(self.name, arguments) if self.id is None else CompletionCall(self.name, arguments, self.id)


class CallWithoutId(CompletionCall):
    def as_object(self, arguments: str) -> dict[str, Any]:
        return {name: value for name, value in super().as_object(arguments).items() if name != "id"}


class Step(BaseModel):
    """A response; without a field it is like that of a real model."""

    model_config = ConfigDict(extra="forbid")

    when: str | None = Field(
        default=None, description="Use it only if the last user message contains this; needed for summaries and titles."
    )
    text: str = ""
    reasoning: str = ""
    reasoning_field: Literal["reasoning", "reasoning_content"] = "reasoning"
    tool_calls: list[ScriptedCall] = Field(default_factory=list)
    finish_reason: str | None = Field(default=None, description="Null sends none.")
    usage: dict[str, Any] | None = Field(default=None, description="Is sent even if not requested; null sends none.")

    keeps_limit: bool = Field(default=False, description="Truncate at the request's output limit, as real servers do.")

    delay: Seconds = Field(default=0, description="Before the first byte.")
    token_delay: Seconds = Field(default=0, description="Between two frames.")
    chunk_chars: Annotated[int, Field(ge=1)] | None = Field(
        default=None, description="Size of the pieces of text and arguments."
    )

    status: Annotated[int, Field(ge=200, le=599)] | None = Field(default=None, description="Answer with an HTTP error.")
    body: Any = Field(default={"error": {"message": "Scripted.", "type": "server_error"}}, description="JSON, or text.")
    headers: dict[str, str] = Field(default_factory=dict)

    raw: list[str] | None = Field(default=None, description="The frames of the body, verbatim.")
    charset: Literal["utf-8", "latin-1"] = Field(
        default="utf-8", description="Of the frames; latin-1 can send any bytes."
    )
    cut_after: Frames | None = Field(default=None, description="Break the connection after so many frames.")
    eof_after: Frames | None = Field(default=None, description="End the body after so many frames, without [DONE].")
    hang: bool = Field(default=False, description="Send nothing after the frames until the client disconnects.")
    hold_after: Frames | None = Field(default=None, description="Pause after so many frames until POST /release.")

    def create_completion(self, chat: CompletionRequest) -> Completion:
        calls = [call.as_call() for call in self.tool_calls]
        limit = chat.max_completion_tokens or chat.max_tokens
        if self.keeps_limit and limit:
            return self._truncate(limit * _CHARS_PER_TOKEN).create_completion(chat)
        default_reason = "tool_calls" if calls else "stop"
        estimated = estimate_usage(chat.characters, self.reasoning + self.text, calls) if chat.include_usage else None
        return ScriptedCompletion(
            step=self,
            pieces=self._split,
            model=chat.model,
            text=self.text,
            calls=calls,
            finish_reason=self.finish_reason if "finish_reason" in self.model_fields_set else default_reason,
            usage=self.usage if "usage" in self.model_fields_set else estimated,
        )

    def _truncate(self, left: int) -> "Step":
        """Returns the step with at most this many characters of its text and then of its calls."""
        text, calls = self.text[:left], list[ScriptedCall]()
        left -= len(text)
        for call in self.tool_calls:
            arguments = call.as_call().arguments
            if left > 0:
                calls.append(call.model_copy(update={"arguments": arguments[:left]}))
            left -= len(arguments)
        changes = {"text": text, "tool_calls": calls, "keeps_limit": False}
        return self.model_copy(update=changes | ({"finish_reason": "length"} if left < 0 else {}))

    def _split(self, text: str) -> Iterable[str]:
        size = self.chunk_chars
        return [text[start : start + size] for start in range(0, len(text), size)] if size else split_tokens(text)

    def matches(self, user_text: str) -> bool:
        return not user_text.startswith(_OF_CONVERSATIONS) if self.when is None else self.when in user_text


@dataclass(frozen=True, kw_only=True)
class ScriptedCompletion(Completion):
    step: Step

    def as_object(self) -> dict[str, Any]:
        response = super().as_object()
        if self.step.reasoning:
            response["choices"][0]["message"][self.step.reasoning_field] = self.step.reasoning
        return response

    def chunks(self) -> Iterator[dict[str, Any]]:
        first, *rest = super().chunks()
        yield first
        for piece in self.pieces(self.step.reasoning):
            yield self.chunk({self.step.reasoning_field: piece})
        yield from rest


class Addition(BaseModel):
    """The body of POST /script."""

    model_config = ConfigDict(extra="forbid")

    steps: list[Step]


class Script:
    def __init__(self) -> None:
        self._steps: list[Step] = []

    def add(self, steps: Iterable[Step]) -> None:
        self._steps.extend(steps)

    def clear(self) -> None:
        self._steps.clear()

    def take(self, user_text: str) -> Step | None:
        """Removes and returns the first matching step."""
        for index, step in enumerate(self._steps):
            if step.matches(user_text):
                return self._steps.pop(index)
        return None
