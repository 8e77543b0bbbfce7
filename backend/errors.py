"""What a person is told when something fails."""

import json
import logging
import secrets
from dataclasses import dataclass

import openai
from agents.exceptions import MaxTurnsExceeded, ModelBehaviorError, ModelRefusalError
from sqlalchemy.exc import DBAPIError

logger = logging.getLogger(__name__)


class BackendError(Exception):
    """An error whose docstring is the sentence for the person."""

    allow_retry = False

    def __str__(self) -> str:
        return super().__str__() or (type(self).__doc__ or "")


class InvalidRequest(BackendError):
    """This is not a valid ChatKit request."""


class NotFound(BackendError):
    """There is nothing with this id: it was deleted, or it never was yours."""


class TooLarge(BackendError):
    """The request is too large."""


class Busy(BackendError):
    """The assistant is still answering in this conversation: wait until it is done, or stop it."""


class MessageTooLong(BackendError):
    """The message is too long."""


class LeaseLost(BackendError):
    """This answer was taken over by another process and ended here."""

    allow_retry = True


class ToolsUnavailable(BackendError):
    """The task service cannot be reached right now. What was done so far is kept; try again in a moment."""

    allow_retry = True


class AnswerCutOff(BackendError):
    """The model's answer was cut off before its end. Try again."""

    allow_retry = True


class AnswerTooLong(BackendError):
    """The model used up its output limit before it said anything. Ask for less at once, or raise LLM_MAX_TOKENS."""

    allow_retry = True


class ProviderFailed(BackendError):
    """The model's service failed. Try again in a moment."""

    allow_retry = True


class EmptyAnswer(BackendError):
    """The model gave an empty answer. Try again."""

    allow_retry = True


@dataclass(frozen=True)
class Explanation:
    message: str
    allow_retry: bool


_SETUP = "The assistant's model is not set up correctly ({}). The person who runs this server can see why in its log."
_BUSY = "The model is busy right now. Try again in a moment."
_UNREACHABLE = "The model cannot be reached right now. Try again in a moment."
_BROKEN = "The model's service failed. Try again in a moment."


def explain(error: BaseException) -> Explanation:
    """A sentence a person understands, with a reference that is in the log; never the error's own text."""
    own = _own_error(error)
    reference = secrets.token_hex(4)
    if own is not None:
        logger.warning("turn failed, reference %s: %s", reference, type(own).__name__)
        return Explanation(f"{own} (Reference {reference})", own.allow_retry)
    message, allow_retry = _describe(error)
    logger.error("turn failed, reference %s", reference, exc_info=error)
    return Explanation(f"{message} (Reference {reference})", allow_retry)


def _own_error(error: BaseException | None) -> BackendError | None:
    while error is not None:
        if isinstance(error, BackendError):
            return error
        error = error.__cause__ or error.__context__
    return None


def _describe(error: BaseException) -> tuple[str, bool]:  # noqa: C901 - one row per case
    match error:
        case openai.AuthenticationError() | openai.PermissionDeniedError():
            return _SETUP.format("its key was refused"), False
        case openai.NotFoundError():
            return _SETUP.format("the model's name or address is unknown"), False
        case openai.RateLimitError():
            return _BUSY, True
        case openai.APIStatusError(status_code=402):
            return _SETUP.format("the account has no credit"), False
        case openai.BadRequestError() | openai.UnprocessableEntityError():
            return _SETUP.format("it refused the request"), False
        case openai.APIStatusError():
            return _BROKEN, True
        case openai.APITimeoutError():
            return "The model took too long to answer. Try again in a moment.", True
        case openai.APIConnectionError():
            return _UNREACHABLE, True
        case openai.APIError() | json.JSONDecodeError():
            return _BROKEN, True
        case MaxTurnsExceeded():
            return "The assistant stopped after too many steps. Say what is still to be done.", True
        case ModelRefusalError():
            return "The model declined to answer this.", False
        case ModelBehaviorError():
            return "The model's answer could not be understood. Try again.", True
        case DBAPIError():
            return "The database cannot be reached right now. Try again in a moment.", True
        case _:
            return "Something went wrong on the server. Try again.", True
