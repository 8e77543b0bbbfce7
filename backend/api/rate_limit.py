"""How often one user may send requests."""

import math

from backend.errors import LimitReached
from common.rate_limit import RateLimit


def check_rate(limit: RateLimit, user_id: str) -> None:
    """Counts a request of a user. Raises `LimitReached` if they come faster than the limit."""
    if wait := limit.wait(user_id):
        seconds = math.ceil(wait)
        raise LimitReached(f"Too many requests. Try again in {seconds} seconds.", retry_seconds=seconds)
