"""Whether a model's context holds what the assistant sends: its instructions and tools, a message, the history."""

import json
import math
from collections import Counter
from dataclasses import dataclass
from typing import Any

from backend.model.failures.errors import ModelError
from backend.settings import ToolCalls

TOKEN_CHARS = 4
"""Characters of a token, which few languages exceed."""
INSTRUCTION_TOKENS: dict[ToolCalls, int] = {"streamed": 2_000, "whole": 2_000, "text": 1_300}
"""What the assistant's instructions and tools need, in tokens, with agents; a test holds it."""
_ROOM_TOKENS = 100  # that at least are left for a message and its answer
_SHORT_REQUEST = 1.5  # times the instructions: a shorter request has a short message


@dataclass(frozen=True)
class Parts:
    """What is known of the parts of a request, in tokens as `count_tokens` has them."""

    history: int = 0
    """What comes before the message that is answered."""
    message: int = 0


def count_tokens(value: Any) -> int:
    return len(json.dumps(value, ensure_ascii=False)) // TOKEN_CHARS


def count_request(body: dict[str, Any]) -> int:
    return count_tokens({name: body[name] for name in ("messages", "tools") if name in body})


def complete_usage(usage: Counter[str], body: dict[str, Any], output_chars: int) -> Counter[str]:
    """Returns what a request has used; what its server has not counted is estimated."""
    return Counter(
        requests=1,
        input_tokens=usage["input_tokens"] or count_request(body),
        output_tokens=usage["output_tokens"] or output_chars // TOKEN_CHARS,
        reasoning_tokens=usage["reasoning_tokens"],
    )


def find_small_context(context_tokens: int | None, mode: ToolCalls, cure: str) -> ModelError | None:
    """Returns the error with which any answer of a model would end that has this context; None if it has enough."""
    needed = INSTRUCTION_TOKENS[mode] + _ROOM_TOKENS
    if context_tokens is None or context_tokens >= needed:
        return None
    return ModelError("model_context_too_small", context=context_tokens, needed=needed, cure=cure)


def explain_rejection(
    error: ModelError, body: dict[str, Any], parts: Parts, context_tokens: int | None, cure: str
) -> ModelError:
    """Returns what is too long for the context: the instructions, the message, what was read, or the conversation.

    Our own count of each part is scaled to the tokens of the request that the server has counted.
    """
    messages = body["messages"]
    if messages[0]["role"] != "system":
        return error
    fixed = count_tokens(messages[0]) + count_tokens(body.get("tools", []))
    whole = fixed + sum(map(count_tokens, messages[1:]))
    scale = error.request_tokens / whole if error.request_tokens else 1.0
    needed, context = round(fixed * scale), error.context_tokens or context_tokens
    details = {"status": error.provider_status, "words": error.words}
    if context is not None and needed + _ROOM_TOKENS > context:
        least = math.ceil((context + 1) / 100) * 100  # counts are estimates, and the server has rejected this one
        return ModelError(
            "model_context_too_small", **details, context=context, needed=max(round(needed, -2), least), cure=cure
        )
    if context is None and whole < _SHORT_REQUEST * fixed:
        return ModelError("model_instructions_too_long", **details, needed=round(needed, -2), cure=cure)
    own = max(whole - parts.history, fixed)
    is_history = own * scale + _ROOM_TOKENS <= context if context is not None else parts.history > own - fixed
    if parts.history and is_history:
        return error
    has_called = any(message["role"] == "assistant" for message in messages)
    if has_called and own - fixed - parts.message > parts.message:
        of_context = f" of {context:,} tokens" if context is not None else ""
        return ModelError("model_answer_read_too_much", **details, of_context=of_context)
    return ModelError("model_message_too_long", **details)
