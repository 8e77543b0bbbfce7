"""What providers get wrong in a stream: ends without a reason, call ids, text that cannot be stored."""

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any, Protocol

from openai.types.chat import ChatCompletionChunk
from openai.types.chat.chat_completion_chunk import Choice, ChoiceDelta, ChoiceDeltaToolCall
from pydantic import BaseModel, ValidationError

from backend.model.errors import AnswerCutOff, AnswerTooLong, ProviderFailed
from service.database import new_id

_UNSTORABLE = {0: "\ufffd"} | dict.fromkeys(range(0xD800, 0xE000), "\ufffd")


@dataclass
class End:
    """How one streamed answer ended; the SDK's events do not tell."""

    reason: str | None = None


class Delta(ChoiceDelta):
    """With all that the SDK looks for beyond OpenAI's fields: that one is not there it learns by an error, in 2 µs."""

    reasoning: Any = None
    reasoning_content: Any = None
    thinking_blocks: Any = None
    annotations: Any = None
    audio: Any = None


class ChunkChoice(Choice):
    delta: Delta  # pyright: ignore[reportIncompatibleVariableOverride] - nobody puts another in


class Chunk(ChatCompletionChunk):
    """A chunk that pydantic reads: the client's own reading looks at each field's type anew, every time."""

    choices: list[ChunkChoice]  # pyright: ignore[reportIncompatibleVariableOverride]

    @classmethod
    def build(cls, *, response: object, data: object) -> "Chunk":
        """The client's hook for reading data into a type of the caller's; what is not valid is taken as it comes."""
        try:
            return cls.model_validate(data)
        except ValidationError:
            return cls.construct(**data) if isinstance(data, dict) else cls.construct()


class Chunks(Protocol):
    """What is needed of an `AsyncStream[Chunk]`."""

    response: Any

    def __aiter__(self) -> AsyncIterator[Chunk]: ...

    async def close(self) -> None: ...


class CheckedStream:
    """A chunk stream that must end with a finish reason, and whose tool calls have ids of our own.

    Providers leave call ids out, repeat them in one answer and reuse them in the next.
    """

    def __init__(self, stream: Chunks, end: End) -> None:
        self._stream = stream
        self._end = end
        self.response = stream.response
        self._said_something = False
        self._calls: list[str | None] = []
        self._current: dict[int, int] = {}
        self._arguments: dict[int, Arguments] = {}

    async def __aiter__(self) -> AsyncIterator[ChatCompletionChunk]:
        async for chunk in self._stream:
            if chunk.choices is None:  # a flat error body in the middle of the stream
                raise ProviderFailed
            for choice in chunk.choices:
                self._repair_delta(choice.delta)
                self._end.reason = choice.finish_reason or self._end.reason
            if self._end.reason == "length" and not self._said_something:
                raise AnswerTooLong
            yield chunk
        if self._end.reason is None:
            raise AnswerCutOff

    def _repair_delta(self, delta: ChoiceDelta | None) -> None:
        if delta is None:
            return
        _clean(delta)
        delta.content = delta.content or None
        for call in delta.tool_calls or ():
            self._repair(call)
        self._said_something = self._said_something or bool(delta.content or delta.tool_calls or delta.refusal)

    async def close(self) -> None:
        await self._stream.close()

    def _repair(self, call: ChoiceDeltaToolCall) -> None:
        given = call.index if call.index is not None else len(self._current)
        position = self._current.get(given)
        starts_another = position is not None and call.id is not None and call.id != self._calls[position]
        if position is None or (starts_another and call.function is not None and call.function.name):
            position = len(self._calls)
            self._calls.append(call.id)
            self._current[given] = position
            call.id = new_id("call")
        else:
            call.id = None
        call.index = position
        if call.function is not None and call.function.arguments:
            arguments = self._arguments.setdefault(position, Arguments())
            call.function.arguments = arguments.feed(call.function.arguments)


_ESCAPE = re.compile(
    r"""
      \\u d[89ab]HH \\u d[c-f]HH                                           # a pair
    | (?P<unfinished> (?:\\u d[89ab]HH)? \\ (?:u H{0,3})? \Z | \\u d[89ab]HH \Z )
    | (?P<lone> \\u d[89a-f]HH )
    | \\ .                                                                # so that \\ud800 is text
    """.replace("H", "[0-9a-f]"),
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)


_BRACKET = re.compile(r"[\[\]{}]")
_DEEPEST = 100  # brackets of the arguments that are open at once; the SDK reads them by a function that calls itself


class Arguments:
    """The JSON of one call as it arrives in pieces, without escapes of lone surrogates: Python reads them as such."""

    def __init__(self) -> None:
        self._held = ""
        self._depth = 0

    def feed(self, piece: str) -> str:
        """What is complete; the rest is the beginning of an escape, and no JSON ends with that.

        Nested too deeply it ends there, so that it is no JSON: the model is told so, as of any other.
        """
        for bracket in _BRACKET.findall(piece):
            self._depth += 0 if self._depth > _DEEPEST else 1 if bracket in "[{" else -1
        if self._depth > _DEEPEST:
            return ""
        text, self._held = self._held + piece, ""
        return _ESCAPE.sub(self._replace, text)

    def _replace(self, match: re.Match[str]) -> str:
        if match["unfinished"]:
            self._held = match["unfinished"]
            return ""
        return r"\ufffd" if match["lone"] else match[0]


def storable(text: str) -> str:
    """The text without what PostgreSQL cannot hold: NUL and lone surrogates."""
    return text.translate(_UNSTORABLE)


def _clean(value: Any) -> Any:
    """The value with every string in it storable; a model is changed in place."""
    match value:
        case str():
            return storable(value)
        case list():
            return [_clean(part) for part in value]
        case dict():
            return {storable(key): _clean(part) for key, part in value.items()}
        case BaseModel():
            for name, part in (*vars(value).items(), *(value.model_extra or {}).items()):
                if part is not None:
                    setattr(value, name, _clean(part))
    return value
