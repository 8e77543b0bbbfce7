"""Retries of model requests: after temporary errors, as long as nothing of the response was shown."""

import random
from collections.abc import Callable
from functools import partial

from agents import ModelRetrySettings, RetryDecision
from agents.retry import RetryPolicyContext

from backend.model.errors import ModelError
from common.telemetry import metrics

MAX_RETRIES = 2
LONGEST_WAIT = 20.0


def retry_settings(first_pause: float, *, show_progress: Callable[[str], None]) -> ModelRetrySettings:
    """Retries with a pause of so many seconds that doubles each time; `show_progress` gets a sentence about each."""
    return ModelRetrySettings(max_retries=MAX_RETRIES, policy=partial(_decide, first_pause, show_progress))


def _decide(first_pause: float, show_progress: Callable[[str], None], context: RetryPolicyContext) -> RetryDecision:
    """Decides whether and after which pause the SDK repeats a request, and shows and counts that.

    Only errors that pass are retried, and the SDK never does so after output was streamed.
    """
    error = context.error
    if not isinstance(error, ModelError) or not error.failure.is_passing:
        return RetryDecision(retry=False)
    retry_after = context.normalized.retry_after
    spread = random.uniform(0.75, 1.25)  # noqa: S311 - so that runs which failed together do not retry together
    delay = first_pause * 2 ** (context.attempt - 1) * spread if retry_after is None else retry_after
    if delay > LONGEST_WAIT:
        return RetryDecision(retry=False)
    reason = "busy" if error.code == "model_busy" else "not answering"
    metrics.RETRIES.labels("model").inc()
    show_progress(f"The model is {reason}, trying again…")
    return RetryDecision(retry=True, delay=delay)
