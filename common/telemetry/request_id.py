"""The id of a request, the same in the logs of all services."""

import re
import secrets
from contextvars import ContextVar

HEADER = "x-request-id"

current: ContextVar[str | None] = ContextVar("request_id", default=None)
"""None outside of any request."""

_ACCEPTED = re.compile(r"[A-Za-z0-9._-]{1,64}")


def accept_or_create(sent: str) -> str:
    return sent if _ACCEPTED.fullmatch(sent) else secrets.token_hex(8)
