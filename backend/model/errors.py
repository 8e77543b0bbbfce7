"""What goes wrong with a model, and the sentences for it."""

import json

import openai

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


def describe(fault: openai.APIError | NotAnEndpoint | json.JSONDecodeError) -> tuple[str, bool]:
    """The sentence for a request to a model that failed, and whether to offer another try."""
    match fault:
        case openai.AuthenticationError() | openai.PermissionDeniedError():
            return _SETUP.format("its key was refused"), False
        case openai.NotFoundError() | NotAnEndpoint():
            return _SETUP.format("the model's name or address is unknown"), False
        case openai.RateLimitError():
            return _BUSY, True
        case openai.APIStatusError(status_code=402):
            return _SETUP.format("the account has no credit"), False
        case openai.BadRequestError() | openai.UnprocessableEntityError():
            return _SETUP.format("it refused the request"), False
        case openai.APITimeoutError():
            return "The model took too long to answer. Try again in a moment.", True
        case openai.APIConnectionError():
            return _UNREACHABLE, True
        case _:
            return _BROKEN, True
