"""Delays after failed sign-ins, which grow with each failure. The database counts them, for all processes together."""

import hashlib
import hmac
import math
from dataclasses import dataclass

from backend.errors import LimitReached
from common.database import NO_USER, Database

NAME_SECONDS = 60
"""The longest delay of a name, so that strangers cannot keep a user out for long."""
LONG_SECONDS = 900
"""The longest delay of a name from one address, and of a device that was signed in with it."""
_COUNT = "SELECT seconds FROM count_sign_in(%(keys)s, %(longest)s)"
_RESET = "SELECT reset_sign_ins(%(keys)s)"


class TooManyFailures(LimitReached):
    """There were too many failed attempts. Try again later."""

    def __init__(self, seconds: float) -> None:
        whole = math.ceil(seconds)
        when = f"{whole} seconds" if whole > 1 else "a second"
        if whole > 90:
            when = f"{math.ceil(whole / 60)} minutes"
        super().__init__(f"There were too many failed attempts. Try again in {when}.", retry_seconds=whole)


@dataclass(frozen=True, slots=True)
class Counter:
    """What failures are counted for, such as a name; its delay grows up to so many seconds."""

    kind: str
    value: str
    longest_seconds: int


class FailedSignIns:
    def __init__(self, database: Database, secret: bytes) -> None:
        """`secret` is the key of the stored hashes, as what is typed as a name may be a password."""
        self._database = database
        self._secret = secret

    async def count(self, *counters: Counter) -> None:
        """Counts an attempt as failed, before its password is checked, as others may be sent at the same time.

        Raises `TooManyFailures`, and counts nothing, while the delay of one of the counters lasts. The first is that by
        which attempts are made one at a time.
        """
        longest = [counter.longest_seconds for counter in counters]
        row = await self._database.fetch_one(NO_USER, _COUNT, keys=self._hash(counters), longest=longest)
        assert row is not None
        if row["seconds"] > 0:
            raise TooManyFailures(row["seconds"])

    async def reset(self, *counters: Counter) -> None:
        await self._database.execute(NO_USER, _RESET, keys=self._hash(counters))

    def _hash(self, counters: tuple[Counter, ...]) -> list[bytes]:
        texts = (f"{counter.kind}\0{counter.value}".encode(errors="surrogatepass") for counter in counters)
        return [hmac.digest(self._secret, text, hashlib.sha256) for text in texts]
