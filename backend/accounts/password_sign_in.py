"""Signing in with a name and a password, at the same cost whether there is such an account or not."""

import asyncio
import contextlib
from dataclasses import dataclass, replace
from typing import ClassVar

import psycopg

from backend.accounts.accounts import Account, add_first_account, find_account, fold_name, replace_hash, set_password
from backend.accounts.events import add_event
from backend.accounts.failures import LONG_SECONDS, NAME_SECONDS, Counter, FailedSignIns
from backend.accounts.passwords import PasswordHashes, PasswordRejected, check_password, needs_rehash, normalise
from backend.accounts.sessions import AccountDisabled
from backend.errors import BackendError, InvalidRequest
from common.database import NO_USER, Database, DatabaseUnavailable


class WrongPassword(BackendError):
    """The name or the password is wrong."""

    code, status = "wrong_password", 401
    headers: ClassVar = {"WWW-Authenticate": "Bearer"}


class WrongOldPassword(BackendError):
    """The old password is wrong."""

    code, status = "wrong_password", 403


class SetupClosed(BackendError):
    """This link does not work any more: it is used, older than an hour, or there is an account. Sign in, or make a new
    link with ./todo user setup."""

    code, status = "setup_closed", 403


class InvalidName(InvalidRequest):
    """A name has up to 64 letters and digits, and may have . _ @ and - between them. “local” is reserved."""


@dataclass(frozen=True, slots=True)
class SignInClient:
    """Who wants to sign in; `session_id` is that of a cookie of the same user, which may be ended."""

    address: str
    browser: str
    session_id: str | None = None


class PasswordSignIn:
    def __init__(self, database: Database, secret: bytes, *, knows_addresses: bool) -> None:
        """`knows_addresses` tells that the clients' addresses are their own, and not that of an unknown proxy."""
        self._database = database
        self._hashes = PasswordHashes()
        self._failures = FailedSignIns(database, secret)
        self._knows_addresses = knows_addresses
        self._storing = set[asyncio.Task[None]]()

    async def sign_in(self, name: str, password: str, client: SignInClient) -> Account:
        """Returns the account.

        Raises `WrongPassword`, `AccountDisabled`, `TooManyFailures`, and the errors of `PasswordHashes.take_place`.
        """
        user_id = fold_name(name.strip())
        counters = self._list_counters(user_id or name, client)
        async with self._hashes.take_place(client.session_id or client.address) as worker:
            await self._failures.count(*counters)
            account = await find_account(self._database, user_id or NO_USER)
            stored = account.password_hash if account else None
            is_right = await worker.verify(stored, password)
            if account is None or stored is None or not is_right:
                if account is not None:
                    self._log_failure(account.user_id, client)
                raise WrongPassword
            await self._failures.reset(*counters)
            if account.disabled_at is not None:
                raise AccountDisabled
            if needs_rehash(stored):
                new = await worker.hash(password)
                if await replace_hash(self._database, account.user_id, new, old_hash=stored):
                    account = replace(account, password_hash=new)
        return account

    async def change_password(self, user_id: str, old: str, new: str) -> str:
        """Sets another password, and ends all sessions of the user; returns the hash.

        Raises the same, and `PasswordRejected`.
        """
        check_password(new, user_id=user_id)
        counter = Counter("change", user_id, LONG_SECONDS)
        async with self._hashes.take_place(user_id) as worker:
            await self._failures.count(counter)
            account = await find_account(self._database, user_id)
            stored = account.password_hash if account else None
            if not await worker.verify(stored, old):
                raise WrongOldPassword
            await self._failures.reset(counter)
            if normalise(new) == normalise(old):
                raise PasswordRejected("The new password is the old one. Choose another.")
            new_hash = await worker.hash(new)
        if not await set_password(self._database, user_id, new_hash, old_hash=stored):
            raise WrongOldPassword  # it was changed meanwhile
        return new_hash

    async def make_first_account(self, code: str, name: str, password: str, client: SignInClient) -> str:
        """Makes the first account for a one-time code, and returns its user id."""
        name = name.strip()
        user_id = fold_name(name)
        if user_id is None:
            raise InvalidName
        check_password(password, user_id=user_id)
        async with self._hashes.take_place(client.address) as worker:
            password_hash = await worker.hash(password)
        if not await add_first_account(self._database, code, user_id, name=name, password_hash=password_hash):
            raise SetupClosed
        return user_id

    def _list_counters(self, name: str, client: SignInClient) -> list[Counter]:
        """A device that was signed in with this name has a delay of its own, so that nobody else can keep it out."""
        if client.session_id is not None:
            return [Counter("session", client.session_id, LONG_SECONDS)]
        counters = [Counter("name", name, NAME_SECONDS)]
        if self._knows_addresses:
            counters.append(Counter("name and address", f"{name}\0{client.address}", LONG_SECONDS))
        return counters

    def _log_failure(self, user_id: str, client: SignInClient) -> None:
        """Stores it without waiting for that, as it would take longer than for an unknown name."""
        storing = asyncio.create_task(self._store_failure(user_id, client))
        self._storing.add(storing)
        storing.add_done_callback(self._storing.discard)

    async def _store_failure(self, user_id: str, client: SignInClient) -> None:
        with contextlib.suppress(DatabaseUnavailable, psycopg.Error):
            await add_event(self._database, user_id, "sign_in_failed", browser=client.browser, address=client.address)
