"""How many messages, runs, conversations and model tokens one user may have, counted in the transaction that starts a
run, and how often a process serves one.
"""

import math
from dataclasses import asdict, dataclass

from backend.errors import LimitReached
from backend.ids import new_id
from common.database import NO_USER, Database, Transaction, advisory_locks
from common.fair_shares import FairQueue
from common.server.rate_limit import RateLimit

_COUNT = """
SELECT count_request(
    %(request)s, %(per_minute)s, %(running)s, %(per_day)s, %(conversations)s, %(tokens_per_day)s, %(is_new)s)"""

_MAX_WAITING_REQUESTS = 60  # of one user
_REQUEST_WAIT_SECONDS = 10.0
_LOCK_USER = f"SELECT {advisory_locks.REQUESTS}"
_SWEEP = "SELECT sweep_requests(1000)"


@dataclass(frozen=True, slots=True)
class UserLimits:
    """The most of each that one user may have; None for any number."""

    per_minute: int | None = None
    running: int | None = None
    per_day: int | None = None
    conversations: int | None = None
    tokens_per_day: int | None = None

    def allow_tokens(self, used: int) -> bool:
        """Whether a user who has used so many model tokens today may use more."""
        return self.tokens_per_day is None or used < self.tokens_per_day


def check_rate(limit: RateLimit, user_id: str) -> None:
    if wait := limit.wait(user_id):
        seconds = math.ceil(wait)
        raise LimitReached(f"Too many requests. Try again in {seconds} seconds.", retry_seconds=seconds)


def create_request_queue(most: int | None) -> FairQueue:
    """Creates the queue of the requests of which `most` of each user are worked on at the same time; None: any number.

    A page sends many requests at once over HTTP/2, so that further ones wait.
    """
    return FairQueue(None, most, most_waiting=_MAX_WAITING_REQUESTS, timeout_seconds=_REQUEST_WAIT_SECONDS)


async def send_request(tx: Transaction, limits: UserLimits, *, is_new: bool) -> None:
    """Counts a message or command; the transaction fails with `LimitReached` if it is one too many."""
    if limits != UserLimits():
        await tx.execute(_COUNT, request=new_id("req"), is_new=is_new, **asdict(limits))


async def lock_user(tx: Transaction) -> None:
    """Waits until no other transaction holds this lock of the user: two would both see the last free place."""
    await tx.execute(_LOCK_USER)


async def sweep(database: Database) -> None:
    await database.execute(NO_USER, _SWEEP)
