"""How often one user may send requests."""

import math

from backend.errors import LimitReached
from common.workers import Pace


def check_rate(pace: Pace, user_id: str) -> None:
    """Raises `LimitReached` for a user whose requests come faster than a person makes them."""
    if wait := pace.wait(user_id):
        seconds = math.ceil(wait)
        raise LimitReached(f"Too many requests. Try again in {seconds} seconds.", retry_seconds=seconds)
