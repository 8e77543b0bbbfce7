"""How often one person may ask."""

import time
from collections import OrderedDict
from collections.abc import Callable

_MOST_PEOPLE = 10_000


class Pace:
    """As many at once as in a minute, then evenly. Each process counts for itself, and forgets who was quiet longest.

    The generic cell rate algorithm (ITU-T I.371): of each person one moment is kept, when all was paid for.
    """

    def __init__(self, per_minute: int | None, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._every = 60 / per_minute if per_minute else 0.0
        self._clock = clock
        self._paid: OrderedDict[str, float] = OrderedDict()

    def wait(self, person: str) -> float:
        """0 when this one may be answered, which counts it; else the seconds until one may."""
        if not self._every:
            return 0.0
        now = self._clock()
        paid = max(self._paid.get(person, now), now)
        if (wait := paid + self._every - now - 60) > 1e-9:  # as exact as seconds added up in floats can be
            return wait
        self._paid[person] = paid + self._every
        self._paid.move_to_end(person)
        if len(self._paid) > _MOST_PEOPLE:
            self._paid.popitem(last=False)
        return 0.0
