"""The id by which one request is found in the logs of both services."""

import re
import secrets
from contextvars import ContextVar

HEADER = "x-request-id"

current: ContextVar[str | None] = ContextVar("request_id", default=None)
"""None outside of any request."""

_PLAIN = re.compile(r"[A-Za-z0-9._-]{1,64}")


def taken_or_made(given: str) -> str:
    """What the caller sent, if it is a plain short token; what else it may be does not belong in a log."""
    return given if _PLAIN.fullmatch(given) else secrets.token_hex(8)
