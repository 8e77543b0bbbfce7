"""Errors of tool calls: each is a sentence for the model, with a kind for programs."""

import logging
import secrets
from traceback import format_tb
from typing import ClassVar, Literal

Kind = Literal["invalid", "not_found", "conflict", "limit", "unavailable"]


class Refusal(Exception):
    """What the caller can act on. The docstring of each subclass is its sentence."""

    kind: ClassVar[Kind] = "invalid"

    def __init__(self, **values: object) -> None:
        sentence = " ".join((self.__doc__ or "").split())  # it may stand on several lines
        super().__init__(sentence.format(**values))


class MetaInvalid(Refusal):
    """{name} in _meta must be text of 1 to {longest} characters without control characters, or left out."""


class CallCancelled(Refusal):
    """The call was cancelled before it changed anything. Send it again if you still want it."""

    kind = "unavailable"


class TooFast(Refusal):
    """Too many calls, so this one was not made. Try again in {seconds} seconds."""

    kind = "limit"


class ArgumentsInvalid(Refusal):
    """{problems}."""


class UnknownTool(Refusal):
    """There is no tool {name}. The tools are {known}."""


class Unavailable(Refusal):
    """{sentence}"""

    kind = "unavailable"


def internal_error(
    error: Exception, *, service: str, log: logging.Logger, cause: BaseException | None = None
) -> Unavailable:
    """The sentence for what nobody foresaw; the details go to the log, without the error's message, which may quote.

    `cause` is what the error is about, where a library wraps it.
    """
    reference = secrets.token_hex(4)
    kind = f"{type(cause or error).__module__}.{type(cause or error).__qualname__}"
    log.error("internal error %s: %s\n%s", reference, kind, "".join(format_tb(error.__traceback__)))
    return Unavailable(sentence=f"The {service} had an internal error (reference {reference}). Try again later.")


def shown(text: str, longest: int = 60) -> str:
    """A stranger's text, fit for one line and for any encoding."""
    return "".join(c if c.isprintable() else "?" for c in text[:longest])
