import time
from collections import OrderedDict

_MAX_USERS = 10_000


class RateLimit:
    """Limits the requests of each user: `per_minute` at once, after that evenly. Each process counts for itself.

    It is the generic cell rate algorithm (ITU-T I.371), which stores one time for each user.
    """

    def __init__(self, per_minute: int | None) -> None:
        self._every = 60 / per_minute if per_minute else 0.0
        self._paid: OrderedDict[str, float] = OrderedDict()

    def wait(self, user_id: str) -> float:
        """Counts a request that is allowed and returns 0, else returns the seconds until one is allowed."""
        if not self._every:
            return 0.0
        now = time.monotonic()
        paid = max(self._paid.get(user_id, now), now)
        if (wait := paid + self._every - now - 60) > 1e-9:  # the rounding error of sums of floats
            return wait
        self._paid[user_id] = paid + self._every
        self._paid.move_to_end(user_id)
        if len(self._paid) > _MAX_USERS:
            self._paid.popitem(last=False)
        return 0.0
