"""Errors with a sentence for the user."""

from collections.abc import Mapping
from typing import ClassVar, Self

from common.text import remove_invisible

_SHOWN_CHARS = 100


class BackendError(Exception):
    """An error whose sentence, its first argument or else the docstring of its class, says what the user can do.

    `code` names it in logs and traces, `status` is the HTTP status of a request that fails with it, and `headers` are
    sent with that. `retry_seconds` is after how long another try may succeed, where that is known.
    """

    code: str = "internal_error"
    status: int = 500
    headers: ClassVar[Mapping[str, str]] = {}
    allow_retry = False
    retry_seconds: int | None = None

    def __str__(self) -> str:
        return super().__str__() or (type(self).__doc__ or "")


class InvalidRequest(BackendError):
    """This is not a valid ChatKit request."""

    code, status = "invalid_request", 400


class NotFound(BackendError):
    code, status = "not_found", 404

    def __init__(self, sentence: str) -> None:
        super().__init__(sentence)

    @classmethod
    def of(cls, kind: str, id: str) -> Self:
        return cls(f"There is no {kind} {shorten(id)}. It may have been deleted.")


class LimitReached(BackendError):
    """You have reached a limit. Wait a moment and try again."""

    code, status = "limit_reached", 429
    allow_retry = True
    retry_seconds = 5

    def __init__(self, *sentence: str, retry_seconds: int | None = None) -> None:
        super().__init__(*sentence)
        if retry_seconds is not None:
            self.retry_seconds = max(1, retry_seconds)


class TooManyAtOnce(LimitReached):
    """Too many of your requests are being worked on at the same time. Wait until some are answered, and try again."""

    code = "too_many_at_once"
    retry_seconds = 1


class Overloaded(BackendError):
    """The assistant is busy. Try again in a few seconds."""

    code, status = "overloaded", 503
    allow_retry = True
    retry_seconds = 5


class LeaseLost(BackendError):
    """Another process of the server took over this answer, so it ended here."""

    code, status = "lease_lost", 500
    allow_retry = True


class Busy(BackendError):
    """The assistant is still answering in this conversation. Wait until it is done, or stop it."""

    code, status = "busy", 409
    allow_retry = True
    retry_seconds = 1


def shorten(sent: str, *, most: int = _SHOWN_CHARS) -> str:
    """Shortens what a client sent, and removes what cannot be seen, so that a sentence can name it."""
    seen = remove_invisible(sent[:most])
    return f"{seen}…" if len(sent) > most else seen
