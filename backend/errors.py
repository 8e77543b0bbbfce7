"""What a person is told when something fails."""

import json
import logging
import secrets
import traceback
from collections.abc import Iterator
from dataclasses import dataclass

import openai
from agents.exceptions import MaxTurnsExceeded, ModelBehaviorError, ModelRefusalError
from pydantic import ValidationError
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout

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


class Unauthorized(BackendError):
    """You are not signed in: send a valid bearer token, or sign in on the page again."""


class ForeignOrigin(BackendError):
    """This request comes from another site: open the page on this server and use it there."""


class LimitReached(BackendError):
    """You have reached a limit: wait a moment."""

    allow_retry = True


class TooLarge(BackendError):
    """The request is too large."""


class Busy(BackendError):
    """The assistant is still answering in this conversation: wait until it is done, or stop it where it began."""

    allow_retry = True


class MessageTooLong(BackendError):
    """The message is too long."""


class LeaseLost(BackendError):
    """This answer was taken over by another process and ended here."""

    allow_retry = True


class ToolsUnavailable(BackendError):
    """The task service cannot be reached right now. What was done so far is kept; try again in a moment."""

    allow_retry = True


class NotCompleted(BackendError):
    """The task could not be completed; it may be gone. Ask for the list to see what is there."""


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


class NotAnEndpoint(Exception):
    """There is a web page where the model's chat completions should be."""


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
    message, allow_retry = describe(error)
    if any(isinstance(one, openai.APIError | DBAPIError | ValidationError) for one in _chain(error)):
        logger.error("turn failed, reference %s\n%s", reference, _without_texts(error))
    else:
        logger.error("turn failed, reference %s", reference, exc_info=error)
    return Explanation(f"{message} (Reference {reference})", allow_retry)


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """The error, what caused it, and so on."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _own_error(error: BaseException) -> BackendError | None:
    return next((one for one in _chain(error) if isinstance(one, BackendError)), None)


def _without_texts(error: BaseException) -> str:
    """A traceback without the errors' texts: a provider's or a database's may quote prompts, tasks and keys."""
    parts = [[*traceback.format_tb(one.__traceback__), _kind(one)] for one in _chain(error)]
    return "\n".join("".join(part) for part in reversed(parts))


def _kind(error: BaseException) -> str:
    name = f"{type(error).__module__}.{type(error).__qualname__}"
    match error:
        case openai.APIStatusError():
            return f"{name}: status {error.status_code}, code {error.code!r}, request {error.request_id!r}"
        case openai.APIError():
            return f"{name}: code {error.code!r}"
        case DBAPIError():
            return f"{name}: SQLSTATE {getattr(error.orig, 'sqlstate', None)}"
        case _:
            return name


def describe(error: BaseException) -> tuple[str, bool]:  # noqa: C901 - one row per case
    """The sentence for an error that is not ours, and whether to offer another try."""
    match error:
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
        case OperationalError() | InterfaceError() | PoolTimeout():
            return "The database cannot be reached right now. Try again in a moment.", True
        case _:
            return "Something went wrong on the server. Try again.", True
