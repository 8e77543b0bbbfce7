"""When a request to the model is sent again: a passing fault, and nothing of the answer was shown yet."""

import json
import random
from collections.abc import Callable
from contextvars import ContextVar
from functools import partial

import openai
from agents import ModelRetrySettings, RetryDecision
from agents.retry import RetryPolicyContext

from backend.model.errors import AnswerCutOff, ProviderFailed
from service.telemetry import metrics

MAX_RETRIES = 3
LONGEST_WAIT = 20.0
telling: ContextVar[Callable[[str], None]] = ContextVar("telling")
"""Shows a line to whoever waits for the answer."""

PASSING = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})

_BADLY_CALLED = "tool_use_failed"  # Groq's, with 400, where its model wrote a call that is none


def retries(first_pause: float) -> ModelRetrySettings:
    """How often a request is sent again; the first time after so many seconds, then each time after twice as many."""
    return ModelRetrySettings(max_retries=MAX_RETRIES, policy=partial(_decide, first_pause))


def _decide(first_pause: float, context: RetryPolicyContext) -> RetryDecision:
    """The runner's question after a fault; it never repeats a request after output was streamed."""
    if not _is_passing(context.error):
        return RetryDecision(retry=False)
    asked = context.normalized.retry_after
    delay = first_pause * 2 ** (context.attempt - 1) * _spread() if asked is None else asked
    if delay > LONGEST_WAIT:
        return RetryDecision(retry=False)
    reason = "busy" if isinstance(context.error, openai.RateLimitError) else "not answering"
    metrics.RETRIES.labels("model").inc()
    telling.get()(f"The model is {reason}, trying again…")
    return RetryDecision(retry=True, delay=delay)


def _spread() -> float:
    """So that turns which failed together do not return together."""
    return random.uniform(0.75, 1.25)  # noqa: S311 - no secret


def _is_passing(error: Exception) -> bool:
    if isinstance(error, openai.APIStatusError):
        return error.status_code in PASSING or error.code == _BADLY_CALLED
    return isinstance(error, openai.APIError | AnswerCutOff | ProviderFailed | json.JSONDecodeError)
