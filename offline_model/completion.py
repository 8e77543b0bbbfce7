"""One finished answer, and the two forms in which it is sent: a chat.completion or its chunks."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from time import time
from typing import Any
from uuid import uuid4


def tokens_of(text: str) -> list[str]:
    """A word with the space before it counts as a token."""
    return re.findall(r"\s*\S+|\s+", text)


@dataclass(frozen=True)
class Call:
    name: str
    arguments: str
    id: str = field(default_factory=lambda: f"call_{uuid4().hex[:24]}")

    def shown(self, arguments: str) -> dict[str, Any]:
        return {"id": self.id, "type": "function", "function": {"name": self.name, "arguments": arguments}}


@dataclass(frozen=True, kw_only=True)
class Completion:
    model: str
    text: str
    calls: Sequence[Call]
    finish_reason: str | None
    usage: dict[str, Any] | None
    pieces: Callable[[str], Iterable[str]] = tokens_of
    id: str = field(default_factory=lambda: f"chatcmpl-{uuid4().hex}")
    created: int = field(default_factory=lambda: int(time()))

    def as_object(self) -> dict[str, Any]:
        calls = {"tool_calls": [call.shown(call.arguments) for call in self.calls]} if self.calls else {}
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
            yield self.chunk({"tool_calls": [{"index": index} | call.shown("")]})
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


def usage_of(prompt_characters: int, text: str, calls: Iterable[Call]) -> dict[str, int]:
    """Estimated: four characters to the token."""
    said = [text, *(call.name + call.arguments for call in calls)]
    prompt, answer = (-(-characters // 4) for characters in (prompt_characters, sum(map(len, said))))
    return {"prompt_tokens": prompt, "completion_tokens": answer, "total_tokens": prompt + answer}
