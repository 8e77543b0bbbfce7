"""Accounts: who may sign in. Their commands use the owner's login, all else that of the services."""

import hashlib
import unicodedata
from dataclasses import dataclass
from datetime import datetime

from psycopg.types.json import Jsonb

from backend.accounts.codes import hash_code
from common.database import NO_USER, Database

LOCAL_USER = "local"
"""The user of AUTH_MODE=none. No account may have this name."""
MAX_NAME_LENGTH = 64
_FREE = frozenset("._@-")  # beside letters and digits
_COLUMNS = "user_id, name, password_hash, issuer, subject, created_at, disabled_at, provider_refused_at"
_FIND = f"SELECT {_COLUMNS} FROM accounts WHERE user_id = %(user)s"
_LIST = """
SELECT account.user_id, account.name, account.created_at, account.disabled_at,
    (SELECT max(at) FROM account_events AS event WHERE event.user_id = account.user_id AND event.kind = 'sign_in')
        AS last_sign_in
FROM accounts AS account ORDER BY account.user_id"""
_ADD = """
INSERT INTO accounts (user_id, name, password_hash) VALUES (%(user)s, %(name)s, %(hash)s)
ON CONFLICT DO NOTHING RETURNING user_id"""
_ADD_FIRST = "SELECT user_id FROM add_first_account(%(code)s, %(id)s, %(name)s, %(hash)s)"
_CHANGE = """
UPDATE accounts SET password_hash = %(hash)s
WHERE user_id = %(user)s AND password_hash IS NOT DISTINCT FROM coalesce(%(old_hash)s, password_hash)
RETURNING user_id"""
# The hash was made by the same transaction: without the change of the account, nothing is ended.
_END_SESSIONS_BEFORE = """
UPDATE sessions SET ended_at = clock_timestamp() WHERE user_id = %(user)s AND ended_at IS NULL
    AND EXISTS (SELECT FROM accounts WHERE user_id = %(user)s AND password_hash = %(hash)s)"""
_REHASH = """
UPDATE accounts SET password_hash = %(hash)s WHERE user_id = %(user)s AND password_hash = %(old_hash)s
RETURNING user_id"""
_DISABLE = """
UPDATE accounts SET disabled_at = now() WHERE user_id = %(user)s AND disabled_at IS NULL RETURNING user_id"""
_END_SESSIONS = """
UPDATE sessions SET ended_at = clock_timestamp()
WHERE user_id = %(user)s AND ended_at IS NULL
    AND EXISTS (SELECT FROM accounts WHERE user_id = %(user)s AND disabled_at IS NOT NULL)"""
_DELETE_CODES = "DELETE FROM one_time_codes WHERE user_id = %(user)s"
_ENABLE = """
UPDATE accounts SET disabled_at = NULL WHERE user_id = %(user)s AND disabled_at IS NOT NULL RETURNING user_id"""
_LOG = """
INSERT INTO account_events (user_id, kind, details)
SELECT %(user)s, %(kind)s, %(details)s
WHERE EXISTS (SELECT FROM accounts WHERE user_id = %(user)s AND password_hash = %(hash)s)"""
_NO_DETAILS = Jsonb({})

# Of a user whom somebody else signs in; the name is the newest one.
_STORE = """
INSERT INTO accounts (user_id, name, issuer, subject) VALUES (%(user)s, %(name)s, %(issuer)s, %(subject)s)
ON CONFLICT (user_id) DO UPDATE SET name = excluded.name
RETURNING xmax = 0 AS is_new"""


@dataclass(frozen=True, slots=True)
class Account:
    user_id: str
    name: str
    password_hash: str | None
    issuer: str | None
    subject: str | None
    created_at: datetime
    disabled_at: datetime | None
    provider_refused_at: datetime | None


def fold_name(name: str) -> str | None:
    """Returns the user id of an account with a password; None if no account can have this name.

    Names that differ only in case, or in forms of the same letters, are one name.
    """
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())
    is_plain = all(c.isalnum() or unicodedata.category(c).startswith("M") or c in _FREE for c in folded)
    if not folded or len(folded) > MAX_NAME_LENGTH or not is_plain or not folded[0].isalnum() or folded == LOCAL_USER:
        return None
    return folded


@dataclass(frozen=True, slots=True)
class ListedAccount:
    user_id: str
    name: str
    created_at: datetime
    disabled_at: datetime | None
    last_sign_in: datetime | None
    """Within the year for which events are kept."""


async def find_account(database: Database, user_id: str) -> Account | None:
    return await database.fetch_one(user_id, _FIND, Account)


async def find_account_by_name(database: Database, name: str) -> Account | None:
    """Returns the account with this user id, or else the one with a password whose name can also be written so."""
    if name and (account := await find_account(database, name)) is not None:
        return account
    folded = fold_name(name.strip())
    account = await find_account(database, folded) if folded else None
    return account if account is not None and account.password_hash is not None else None


async def list_accounts(database: Database) -> list[ListedAccount]:
    """Returns all accounts; needs the login of the tables' owner."""
    async with database.owner_transaction() as tx:
        cursor = await tx.execute(_LIST, ListedAccount)
    return await cursor.fetchall()


async def add_account(database: Database, user_id: str, *, name: str, password_hash: str) -> bool:
    """Returns False if there is an account of this id."""
    return await database.fetch_one(user_id, _ADD, name=name, hash=password_hash) is not None


async def add_first_account(database: Database, code: str, user_id: str, *, name: str, password_hash: str) -> bool:
    """Adds the first account for a one-time code, which is then gone.

    Returns False, and changes nothing, if there is an account, or no such code that has not expired.
    """
    values = {"code": hash_code(code), "id": user_id, "name": name, "hash": password_hash}
    return await database.fetch_one(NO_USER, _ADD_FIRST, **values) is not None


async def set_password(database: Database, user_id: str, password_hash: str, *, old_hash: str | None = None) -> bool:
    """Sets the password of an account, and ends all sessions, tokens and open links of its user.

    Returns False, and changes nothing, if there is no such account, or its password is not that of `old_hash` any more.
    """
    async with database.transaction(user_id) as tx:
        changed = await tx.execute(_CHANGE, hash=password_hash, old_hash=old_hash)
        await tx.execute(_END_SESSIONS_BEFORE, hash=password_hash)
        await tx.execute(_DELETE_CODES)
        await tx.execute(_LOG, hash=password_hash, kind="password_changed", details=_NO_DETAILS)
    return await changed.fetchone() is not None


async def replace_hash(database: Database, user_id: str, password_hash: str, *, old_hash: str) -> bool:
    """Stores another hash of the same password; returns False if the password was changed meanwhile."""
    return await database.fetch_one(user_id, _REHASH, hash=password_hash, old_hash=old_hash) is not None


async def disable_account(database: Database, user_id: str) -> bool:
    """Ends all sessions of a user, who cannot sign in any more; returns whether the account was enabled before."""
    async with database.transaction(user_id) as tx:
        changed = await tx.execute(_DISABLE)
        await tx.execute(_END_SESSIONS)  # with a snapshot of its own, which has each session that was begun before
        await tx.execute(_DELETE_CODES)
    return await changed.fetchone() is not None


async def enable_account(database: Database, user_id: str) -> bool:
    return await database.fetch_one(user_id, _ENABLE) is not None


async def store_account(
    database: Database, user_id: str, name: str, *, issuer: str | None = None, subject: str | None = None
) -> bool:
    """Stores the account of a user whom an identity provider or a proxy signs in, or its new name.

    Returns whether it is new.
    """
    stored = await database.fetch_one(user_id, _STORE, name=name, issuer=issuer, subject=subject)
    assert stored
    return stored["is_new"]


def get_provider_user_id(issuer: str, subject: str) -> str:
    """Returns the user id of an account at an identity provider."""
    digest = hashlib.sha256(f"{issuer}\n{subject}".encode()).hexdigest()
    return f"oidc-{digest[:32]}"
