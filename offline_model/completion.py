"""One finished answer, and the two forms in which it is sent: a chat.completion or its chunks."""

import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from time import time
from typing import Any
from uuid import uuid4

Pieces = Callable[[str], Iterable[str]]


@dataclass(frozen=True)
class Call:
    name: str
    arguments: str
    id: str | None = field(default_factory=lambda: f"call_{uuid4().hex[:24]}")


@dataclass(frozen=True, kw_only=True)
class Completion:
    model: str
    text: str = ""
    reasoning: str = ""
    reasoning_field: str = "reasoning"
    calls: tuple[Call, ...] = ()
    finish_reason: str | None
    usage: dict[str, Any] | None
    id: str = field(default_factory=lambda: f"chatcmpl-{uuid4().hex}")
    created: int = field(default_factory=lambda: int(time()))

    def as_object(self) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": self.text or None}
        if self.reasoning:
            message[self.reasoning_field] = self.reasoning
        if self.calls:
            message["tool_calls"] = [_call_object(call, call.arguments) for call in self.calls]
        choice = {"index": 0, "message": message, "finish_reason": self.finish_reason}
        return self._envelope("chat.completion", [choice]) | ({"usage": self.usage} if self.usage else {})

    def as_chunks(self, pieces: Pieces) -> Iterator[dict[str, Any]]:
        yield self._chunk({"role": "assistant", "content": "" if self.text else None})
        for piece in pieces(self.reasoning):
            yield self._chunk({self.reasoning_field: piece})
        for piece in pieces(self.text):
            yield self._chunk({"content": piece})
        for index, call in enumerate(self.calls):
            yield self._chunk({"tool_calls": [{"index": index} | _call_object(call, "")]})
            for piece in pieces(call.arguments):
                yield self._chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
        if self.finish_reason is not None:
            yield self._chunk({}, self.finish_reason)
        if self.usage:
            yield self._envelope("chat.completion.chunk", []) | {"usage": self.usage}

    def _chunk(self, delta: dict[str, Any], finish_reason: str | None = None) -> dict[str, Any]:
        return self._envelope("chat.completion.chunk", [{"index": 0, "delta": delta, "finish_reason": finish_reason}])

    def _envelope(self, kind: str, choices: list[dict[str, Any]]) -> dict[str, Any]:
        return {"id": self.id, "object": kind, "created": self.created, "model": self.model, "choices": choices}


def _call_object(call: Call, arguments: str) -> dict[str, Any]:
    function = {"name": call.name, "arguments": arguments}
    return ({} if call.id is None else {"id": call.id}) | {"type": "function", "function": function}


def server_sent(chunks: Iterable[dict[str, Any]]) -> Iterator[str]:
    for chunk in chunks:
        yield f"data: {json.dumps(chunk, separators=(',', ':'))}\n\n"
    yield "data: [DONE]\n\n"


def tokens_of(text: str) -> list[str]:
    """A word with the space before it counts as a token."""
    return re.findall(r"\s*\S+|\s+", text)


def limited(text: str, tokens: int | None) -> str:
    return "".join(tokens_of(text)[:tokens])


def pieces_of(size: int) -> Pieces:
    return lambda text: (text[start : start + size] for start in range(0, len(text), size))


def usage_of(prompt_characters: int, answer_characters: int) -> dict[str, int]:
    """Estimated: four characters to the token."""
    prompt, answer = (-(-characters // 4) for characters in (prompt_characters, answer_characters))
    return {"prompt_tokens": prompt, "completion_tokens": answer, "total_tokens": prompt + answer}
