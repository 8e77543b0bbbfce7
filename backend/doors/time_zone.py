"""Where the caller of a request is."""

import logging
from functools import lru_cache

from starlette.requests import HTTPConnection

from service.clock import find_zone

logger = logging.getLogger(__name__)

HEADER = "X-Time-Zone"
_CHARS_IN_A_LINE = 20


def time_zone_of(request: HTTPConnection) -> str | None:
    """The zone that the request names; None without one, or for one that nobody knows."""
    given = request.headers.get(HEADER, "")
    if given and find_zone(given) is None:
        _tell(given[:_CHARS_IN_A_LINE])
        return None
    return given or None


@lru_cache(maxsize=100)  # a client that is wrong is so with each request
def _tell(beginning: str) -> None:
    logger.warning("a request's %s is not known and not used; it begins %r", HEADER, beginning)
