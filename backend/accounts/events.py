"""The audit log of accounts: sign-ins, failures, tokens, links and what the operator did."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from psycopg.types.json import Jsonb

from common.database import Database, Transaction

Kind = Literal[
    "account_made",
    "account_disabled",
    "account_enabled",
    "account_removed",
    "account_adopted",
    "sign_in",
    "sign_in_failed",
    "sign_out",
    "password_changed",
    "token_made",
    "token_ended",
    "link_made",
    "device_linked",
    "session_ended",
    "client_allowed",
    "client_ended",
]
_MOST_LISTED = 1_000
_LIST = """
SELECT at, user_id, kind, details FROM account_events
WHERE %(of)s::text IS NULL OR user_id = %(of)s ORDER BY id DESC LIMIT %(most)s"""
_ADD = "INSERT INTO account_events (user_id, kind, details) VALUES (%(user)s, %(kind)s, %(details)s)"


@dataclass(frozen=True, slots=True)
class AccountEvent:
    at: datetime
    user_id: str
    kind: str
    details: dict[str, Any]


async def add_event(database: Database, user_id: str, kind: Kind, **details: Any) -> None:
    """Stores what happened, with facts such as `address` or `name`; never a password, token or code."""
    await database.execute(user_id, _ADD, kind=kind, details=Jsonb(details))


async def send_event(tx: Transaction, kind: Kind, **details: Any) -> None:
    """Stores it in a transaction of the user."""
    await tx.execute(_ADD, kind=kind, details=Jsonb(details))


async def list_events(database: Database, user_id: str | None) -> list[AccountEvent]:
    """Returns the last thousand events, of one user or of all, oldest first; needs the login of the tables' owner."""
    async with database.owner_transaction() as tx:
        cursor = await tx.execute(_LIST, AccountEvent, of=user_id, most=_MOST_LISTED)
    return (await cursor.fetchall())[::-1]
