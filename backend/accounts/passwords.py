"""Passwords: which are accepted, and their hashes (argon2id), of which a process computes few at the same time."""

import asyncio
import secrets
import unicodedata
from base64 import b64encode
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from backend.errors import InvalidRequest, LimitReached, Overloaded
from common.fair_shares import FairQueue, QueueTimeout, ShareExceeded

MAX_LENGTH = 1_000
"""Characters of a password that is sent, before its normalisation."""
_MIN_LENGTH = 8  # NIST SP 800-63B, section 5.1.1.2, which also asks for NFKC and no rules of composition
# Of lists of stolen passwords, those of eight characters or more that are there most often; folded.
_COMMON = frozenset(Path(__file__).with_name("common_passwords.txt").read_text().split())
# RFC 9106, section 4, second choice, with one lane: four would take the cores from the event loop.
_HASHER = PasswordHasher(time_cost=3, memory_cost=65_536, parallelism=1)
_AT_ONCE = 2
_MAX_WAITING = 20  # of one address
_WAIT_SECONDS = 5.0
_Result = TypeVar("_Result")


class PasswordRejected(InvalidRequest):
    """This password cannot be used."""


class HashesBusy(Overloaded):
    """Too many sign-ins are being checked at the moment. Try again in a few seconds."""


class TooManySignIns(LimitReached):
    """Too many sign-ins from your address are waiting. Try again in a few seconds."""


def normalise(password: str) -> str:
    return unicodedata.normalize("NFKC", password)


def check_password(password: str, *, user_id: str) -> None:
    """Raises `PasswordRejected` for one that nobody should choose, with a sentence that says why."""
    normalised = normalise(password)
    if len(normalised) < _MIN_LENGTH:
        raise PasswordRejected(f"The password is too short. Choose one with at least {_MIN_LENGTH} characters.")
    if len(password) > MAX_LENGTH:
        raise PasswordRejected(f"The password is too long. It can have {MAX_LENGTH:,} characters.")
    if any(unicodedata.category(c) in ("Cc", "Cs") for c in normalised):
        raise PasswordRejected("The password has a control character, which a keyboard cannot type. Choose another.")
    folded = normalise(normalised.casefold())
    if folded == user_id:
        raise PasswordRejected("The password is the name. Choose another.")
    if folded in _COMMON or len(set(folded)) == 1:
        raise PasswordRejected("This password is among the first that others try. Choose another.")


def hash_password(password: str) -> str:
    return _HASHER.hash(normalise(password))


def _verify(stored: str, password: str) -> bool:
    try:
        return _HASHER.verify(stored, normalise(password))
    except (VerificationError, InvalidHashError, UnicodeEncodeError):
        return False


def create_unknown_hash() -> str:
    """Returns a hash of no password, which takes as long to check as that of an account."""
    salt, digest = (b64encode(secrets.token_bytes(size)).decode().rstrip("=") for size in (16, 32))
    return f"$argon2id$v=19$m={_HASHER.memory_cost},t={_HASHER.time_cost},p={_HASHER.parallelism}${salt}${digest}"


class HashWorker:
    """Computes hashes in threads, one after the other, for one caller of `PasswordHashes`."""

    def __init__(self) -> None:
        self.running: asyncio.Future[Any] | None = None

    async def hash(self, password: str) -> str:
        return await self._compute(partial(hash_password, password))

    async def verify(self, stored: str | None, password: str) -> bool:
        """Whether it is the password of a stored hash; takes as long for None, as of an unknown name."""
        is_same = await self._compute(partial(_verify, stored or create_unknown_hash(), password))
        return is_same and stored is not None

    async def _compute(self, work: Callable[[], _Result]) -> _Result:
        running = asyncio.get_running_loop().run_in_executor(None, work)
        self.running = running
        return await asyncio.shield(running)  # a thread cannot be stopped


class PasswordHashes:
    """Lets two callers at once compute hashes, each of which takes 64 MB and a core; the others wait some seconds."""

    def __init__(self) -> None:
        self._queue = FairQueue(_AT_ONCE, None, most_waiting=_MAX_WAITING, timeout_seconds=_WAIT_SECONDS)

    @asynccontextmanager
    async def take_place(self, key: str) -> AsyncIterator[HashWorker]:
        """Callers with different keys, such as addresses, are served in turn. Raises `HashesBusy`, `TooManySignIns`."""
        try:
            release = await self._queue.take(key)
        except QueueTimeout:
            raise HashesBusy from None
        except ShareExceeded:
            raise TooManySignIns from None
        worker = HashWorker()
        try:
            yield worker
        finally:
            if worker.running is None or worker.running.done():
                release()
            else:  # the caller was cancelled
                worker.running.add_done_callback(lambda _: release())


def needs_rehash(stored: str) -> bool:
    """Whether a hash was made with other parameters than those of today."""
    return _HASHER.check_needs_rehash(stored)
