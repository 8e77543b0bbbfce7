"""When a request to the model is sent again: a passing fault, and nothing of the answer was shown yet."""

import json
import random
from contextvars import ContextVar

import openai
from agents import ModelRetrySettings, RetryDecision
from agents.retry import RetryPolicyContext
from chatkit.types import ProgressUpdateEvent

from backend import reports
from backend.errors import AnswerCutOff, ProviderFailed
from backend.turns import Turn

MAX_RETRIES = 3
FIRST_DELAY = 0.5  # seconds, doubled each time
LONGEST_WAIT = 20.0
answering: ContextVar[Turn] = ContextVar("answering")
"""The turn whose task this is."""

PASSING = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})


def policy(context: RetryPolicyContext) -> RetryDecision:
    """The runner's question after a fault; it never repeats a request after output was streamed."""
    if not _is_passing(context.error):
        return RetryDecision(retry=False)
    asked = context.normalized.retry_after
    delay = _backoff(context.attempt) if asked is None else asked
    if delay > LONGEST_WAIT:
        return RetryDecision(retry=False)
    reason = "busy" if isinstance(context.error, openai.RateLimitError) else "not answering"
    reports.RETRIES.labels("model").inc()
    answering.get().emit(ProgressUpdateEvent(text=f"The model is {reason}, trying again…"))
    return RetryDecision(retry=True, delay=delay)


RETRIES = ModelRetrySettings(max_retries=MAX_RETRIES, policy=policy)


def _backoff(attempt: int) -> float:
    """Seconds before the next attempt, spread so that turns which failed together do not return together."""
    return FIRST_DELAY * 2 ** (attempt - 1) * random.uniform(0.75, 1.25)  # noqa: S311 - no secret


def _is_passing(error: Exception) -> bool:
    if isinstance(error, openai.APIStatusError):
        return error.status_code in PASSING
    return isinstance(error, openai.APIError | AnswerCutOff | ProviderFailed | json.JSONDecodeError)
