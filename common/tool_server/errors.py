"""Errors of tool calls: a sentence for the model, and a kind for programs."""

import logging
import secrets
from traceback import format_tb
from typing import ClassVar, Literal

Kind = Literal["invalid", "not_found", "conflict", "limit", "unavailable"]


class CallError(Exception):
    """An error that the caller can act on. The docstring of each subclass is its sentence."""

    kind: ClassVar[Kind] = "invalid"

    def __init__(self, **values: object) -> None:
        sentence = " ".join((self.__doc__ or "").split())  # it may span several lines
        super().__init__(sentence.format(**values))


class MetaInvalid(CallError):
    """{name} in _meta must be text of 1 to {max_length} characters without control characters, or left out."""


class CallCancelled(CallError):
    """The call was cancelled before it changed anything. Send it again if you still want it."""

    kind = "unavailable"


class IdempotencyKeyReused(CallError):
    """This idempotency key was used by an earlier call with other arguments. Send each new call with a new key."""

    kind = "conflict"


class TooFast(CallError):
    """Too many calls, so this one was not made. Try again in {seconds} seconds."""

    kind = "limit"


class TooManyAtOnce(CallError):
    """Too many of your calls are being carried out at the same time, so this one was not made. Wait until some of them
    are done, and try again."""

    kind = "limit"


class ArgumentsInvalid(CallError):
    """{problems}."""


class UnknownTool(CallError):
    """There is no tool {name}. The tools are {known}."""


class Unavailable(CallError):
    """{sentence}"""

    kind = "unavailable"


def log_internal_error(error: Exception, *, service: str, log: logging.Logger) -> Unavailable:
    """Logs an unexpected error without its message, which may quote users, and returns the sentence about it."""
    reference = secrets.token_hex(4)
    kind = f"{type(error).__module__}.{type(error).__qualname__}"
    log.error("internal error %s: %s\n%s", reference, kind, "".join(format_tb(error.__traceback__)))
    return Unavailable(sentence=f"The {service} had an internal error (reference {reference}). Try again later.")


def to_printable(text: str, max_length: int = 60) -> str:
    """Makes untrusted text fit for one line: shortens it and replaces control characters by `?`."""
    return "".join(c if c.isprintable() else "?" for c in text[:max_length])
