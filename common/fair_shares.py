"""Shares of what all users of a process use at the same time: places with a fair queue, and limits without one."""

import asyncio
import math
from collections import OrderedDict, deque
from collections.abc import Callable

Release = Callable[[], None]
"""Ends a hold; further calls do nothing."""


class ShareExceeded(Exception):
    """A user already has as much at the same time as one user may have."""


class QueueTimeout(Exception):
    """Other users held all places until the time-out."""


class SimultaneousLimit:
    """Limits what each user has at the same time to `most`, and rejects what is beyond it; None: no limit."""

    def __init__(self, most: int | None) -> None:
        self._most = most
        self._held = dict[str, int]()

    def take(self, user_id: str) -> Release:
        """Counts one more for the user until `Release` is called. Raises `ShareExceeded`."""
        if not self.allows(user_id):
            raise ShareExceeded
        self._held[user_id] = self._held.get(user_id, 0) + 1
        return _create_release(lambda: self._give_back(user_id))

    def allows(self, user_id: str) -> bool:
        return self._most is None or self._held.get(user_id, 0) < self._most

    def _give_back(self, user_id: str) -> None:
        self._held[user_id] -= 1
        if not self._held[user_id]:
            del self._held[user_id]


class FairQueue:
    """Lets at most `places` callers in at the same time, and at most `share` of one user; None: any number.

    The other callers wait. Their users are served in turn, and the callers of one user in the order in which they came.
    """

    def __init__(
        self,
        places: int | None,
        share: int | None,
        *,
        most_waiting: int | None = None,
        timeout_seconds: float | None = None,
    ) -> None:
        """`most_waiting` callers of one user can wait, each for `timeout_seconds`; None: any number, and for ever."""
        self._free = math.inf if places is None else places
        self._shares = SimultaneousLimit(share)
        self._most_waiting = most_waiting
        self._timeout_seconds = timeout_seconds
        # The users in the order of their turns. Where a place is free, each of them has used up its share.
        self._waiting = OrderedDict[str, deque[asyncio.Future[Release]]]()

    async def take(self, user_id: str) -> Release:
        """Waits for a place. Raises `ShareExceeded` if it is the user's own callers who hold or await too much, else
        `QueueTimeout`.
        """
        if release := self.take_at_once(user_id):
            return release
        if self._most_waiting is not None and len(self._waiting.get(user_id, ())) >= self._most_waiting:
            raise ShareExceeded
        caller = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(user_id, deque()).append(caller)
        try:
            await asyncio.wait([caller], timeout=self._timeout_seconds)
        except asyncio.CancelledError:
            if caller.done():
                caller.result()()
            else:
                self._leave(user_id, caller)
            raise
        if caller.done():
            return caller.result()
        self._leave(user_id, caller)
        raise QueueTimeout if self._shares.allows(user_id) else ShareExceeded

    def take_at_once(self, user_id: str) -> Release | None:
        """Returns None if the user would have to wait."""
        return self._let_in(user_id) if self._free and self._shares.allows(user_id) else None

    def _let_in(self, user_id: str) -> Release:
        self._free -= 1
        give_back = self._shares.take(user_id)

        def release() -> None:
            give_back()
            self._free += 1
            self._serve()

        return _create_release(release)

    def _serve(self) -> None:
        """Lets in the next caller, of the first user in turn whose share is not used up."""
        user_id = next(filter(self._shares.allows, self._waiting), None)
        if user_id is None:
            return
        caller = self._waiting[user_id].popleft()
        self._waiting.move_to_end(user_id)
        self._remove_if_empty(user_id)
        caller.set_result(self._let_in(user_id))

    def _leave(self, user_id: str, caller: asyncio.Future[Release]) -> None:
        self._waiting[user_id].remove(caller)
        self._remove_if_empty(user_id)

    def _remove_if_empty(self, user_id: str) -> None:
        if not self._waiting[user_id]:
            del self._waiting[user_id]


def _create_release(act: Callable[[], None]) -> Release:
    is_done = False

    def release() -> None:
        nonlocal is_done
        if not is_done:
            is_done = True
            act()

    return release
