"""How often one user may send requests."""

import time
from collections import OrderedDict
from collections.abc import Callable

_MOST_USERS = 10_000


class RateLimit:
    """As many requests at once as in a minute, then evenly. Each process counts for itself.

    The generic cell rate algorithm (ITU-T I.371): of each user one moment is stored, when all was paid for.
    """

    def __init__(self, per_minute: int | None, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._every = 60 / per_minute if per_minute else 0.0
        self._clock = clock
        self._paid: OrderedDict[str, float] = OrderedDict()

    def wait(self, user_id: str) -> float:
        """Returns 0 and counts a request that may be answered, else the seconds until one may."""
        if not self._every:
            return 0.0
        now = self._clock()
        paid = max(self._paid.get(user_id, now), now)
        if (wait := paid + self._every - now - 60) > 1e-9:  # as exact as seconds added up in floats can be
            return wait
        self._paid[user_id] = paid + self._every
        self._paid.move_to_end(user_id)
        if len(self._paid) > _MOST_USERS:
            self._paid.popitem(last=False)
        return 0.0
