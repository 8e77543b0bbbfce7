"""Accounts: who may sign in. Their commands use the owner's login, all else that of the services."""

import unicodedata
from dataclasses import dataclass
from datetime import datetime

from common.database import Database

LOCAL_USER = "local"
"""The user of AUTH_MODE=none. No account may have this name."""
MAX_NAME_LENGTH = 64
_FREE = frozenset("._@-")  # beside letters and digits
_COLUMNS = "user_id, name, password_hash, issuer, subject, created_at, disabled_at"
_FIND = f"SELECT {_COLUMNS} FROM accounts WHERE user_id = %(user)s"


@dataclass(frozen=True, slots=True)
class Account:
    user_id: str
    name: str
    password_hash: str | None
    issuer: str | None
    subject: str | None
    created_at: datetime
    disabled_at: datetime | None


def fold_name(name: str) -> str | None:
    """Returns the user id of an account with a password; None if no account can have this name.

    Names that differ only in case, or in forms of the same letters, are one name.
    """
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())
    is_plain = all(c.isalnum() or unicodedata.category(c).startswith("M") or c in _FREE for c in folded)
    if not folded or len(folded) > MAX_NAME_LENGTH or not is_plain or not folded[0].isalnum() or folded == LOCAL_USER:
        return None
    return folded


async def find_account(database: Database, user_id: str) -> Account | None:
    return await database.fetch_one(user_id, _FIND, Account)
