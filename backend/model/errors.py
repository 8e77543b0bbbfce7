"""What goes wrong with a model, and the sentences for it."""

import json

import openai
from httpx2 import ConnectTimeout

from backend.conversation.errors import BackendError

_SETUP = "The assistant's model is not set up correctly ({}). The person who runs this server can see why in its log."
_BUSY = "The model is busy right now. Try again in a moment."
_UNREACHABLE = "The model cannot be reached right now. Try again in a moment."
_BROKEN = "The model's service failed. Try again in a moment."


class AnswerCutOff(BackendError):
    """The model's answer was cut off before its end. Try again."""

    allow_retry = True


class AnswerTooLong(BackendError):
    """The model used up its output limit before it said anything. Ask for less at once, or raise LLM_MAX_TOKENS."""

    allow_retry = True


class ProviderFailed(BackendError):
    """The model's service failed. Try again in a moment."""

    allow_retry = True


class NotAnEndpoint(Exception):
    """There is a web page where the model's chat completions should be."""


Fault = openai.APIError | NotAnEndpoint | json.JSONDecodeError


def describe(fault: Fault) -> tuple[str, bool]:
    """The sentence for a request to a model that failed, and whether to offer another try."""
    wrong = wrong_setup(fault)
    if wrong is not None:
        return _SETUP.format(wrong), False
    match fault:
        case openai.RateLimitError():
            return _BUSY, True
        # What the transport says of each connection that could not be made, or was closed before an answer.
        case openai.APITimeoutError(__cause__=ConnectTimeout()):
            return _UNREACHABLE, True
        case openai.APITimeoutError():
            return "The model took too long to answer. Try again in a moment.", True
        case openai.APIConnectionError():
            return _UNREACHABLE, True
        case _:
            return _BROKEN, True


def wrong_setup(fault: Fault) -> str | None:
    """What whoever runs this has to change before a request can succeed."""
    match fault:
        case openai.AuthenticationError() | openai.PermissionDeniedError():
            return "its key was refused"
        case openai.NotFoundError() | NotAnEndpoint():
            return "the model's name or address is unknown"
        case openai.APIStatusError(status_code=status) if status < 400:  # a redirect, which is not followed
            return "the model's name or address is unknown"
        case openai.APIStatusError(status_code=402):
            return "the account has no credit"
        case openai.BadRequestError() | openai.UnprocessableEntityError():
            return "it refused the request"
        case _:
            return None
