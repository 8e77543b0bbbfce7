"""What one request to the model took."""

import time

from agents import ModelResponse

from backend.conversation.items import Json


def taken(response: ModelResponse, *, model: str, since: float) -> Json:
    """With its `seconds` from a moment of `time.monotonic`."""
    used = response.usage
    return {
        "model": model,
        "input_tokens": used.input_tokens,
        "output_tokens": used.output_tokens,
        "reasoning_tokens": used.output_tokens_details.reasoning_tokens,
        "seconds": round(time.monotonic() - since, 3),
    }
