"""The time zone that a request names."""

import logging
from functools import lru_cache

from starlette.requests import HTTPConnection

from service.clock import find_zone

logger = logging.getLogger(__name__)

HEADER = "X-Time-Zone"
_CHARS_IN_A_LINE = 20


def find_time_zone(request: HTTPConnection) -> str | None:
    """None if the request names no zone, or an unknown one."""
    name = request.headers.get(HEADER, "")
    if name and find_zone(name) is None:
        _warn(name[:_CHARS_IN_A_LINE])
        return None
    return name or None


@lru_cache(maxsize=100)  # a client that is wrong is so with each request
def _warn(beginning: str) -> None:
    logger.warning("a request's %s is not known and not used; it begins %r", HEADER, beginning)
