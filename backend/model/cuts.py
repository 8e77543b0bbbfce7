"""Requests that a server cuts to what the model's context holds, and says nothing."""

import json
import logging
from collections.abc import AsyncIterator
from typing import Any

from backend.model.providers import Profile
from backend.model.repairs import Chunk, Chunks

logger = logging.getLogger(__name__)

_CHARS = 4  # of a token, which few languages exceed
_LEAST = 0.75  # of the tokens that are expected by that
_SMALLEST = 1_000  # no context is smaller; a server may count only what it had not read before


class CutRequests:
    """Tells once when the tokens that the model read are fewer than a request has."""

    def __init__(self, profile: Profile) -> None:
        self._is_watched = profile.cuts_silently

    def watched(self, stream: Chunks, body: dict[str, Any]) -> Chunks:
        if not self._is_watched:
            return stream
        sent = {name: body[name] for name in ("messages", "tools") if name in body}
        return _Watched(stream, len(json.dumps(sent, ensure_ascii=False)) // _CHARS, self)

    def compare(self, expected: int, tokens: int) -> None:
        if self._is_watched and _SMALLEST <= tokens < _LEAST * expected:
            self._is_watched = False
            logger.warning(
                "the model read %d tokens of a request of about %d: its context is too small, and the instructions are"
                " cut off first; for Ollama set OLLAMA_CONTEXT_LENGTH=16384 or more",
                tokens,
                expected,
            )


class _Watched:
    def __init__(self, stream: Chunks, expected: int, requests: CutRequests) -> None:
        self.response = stream.response
        self._stream = stream
        self._expected = expected
        self._requests = requests

    async def __aiter__(self) -> AsyncIterator[Chunk]:
        async for chunk in self._stream:
            if chunk.usage and isinstance(chunk.usage.prompt_tokens, int):
                self._requests.compare(self._expected, chunk.usage.prompt_tokens)
            yield chunk

    async def close(self) -> None:
        await self._stream.close()
