"""Codes that open something once, such as a link for a phone. Only their hashes are stored."""

import hashlib
import secrets
from dataclasses import dataclass
from typing import Any, Literal

from psycopg.types.json import Jsonb

from common.database import NO_USER, Database, Transaction

Kind = Literal["setup", "link", "authorization"]
"""What a code opens: the first account, a session of a device, or tokens of an OAuth client."""
_BYTES = 24  # 32 characters
_ADD = """
INSERT INTO one_time_codes (user_id, hash, kind, details, expires_at)
VALUES (%(user)s, %(hash)s, %(kind)s, %(details)s, now() + make_interval(secs => %(seconds)s))"""
_REPLACE = "DELETE FROM one_time_codes WHERE user_id = %(user)s AND kind = %(kind)s"
_TAKE = "SELECT user_id, details FROM take_one_time_code(%(hash)s, %(kind)s)"


@dataclass(frozen=True, slots=True)
class TakenCode:
    user_id: str
    details: dict[str, Any]


async def make_code(
    database: Database,
    user_id: str,
    kind: Kind,
    *,
    seconds: float,
    details: dict[str, Any] | None = None,
    replaces: bool = False,
) -> str:
    """Stores a code of a user that can be taken once within `seconds`, and returns it.

    If it `replaces` the others of its kind, those of the user end.
    """
    async with database.transaction(user_id) as tx:
        if replaces:
            await tx.execute(_REPLACE, kind=kind)
        return await send_code(tx, kind, seconds=seconds, details=details)


async def send_code(tx: Transaction, kind: Kind, *, seconds: float, details: dict[str, Any] | None = None) -> str:
    """Stores a code in a transaction of its user, or in one of the owner if it is of nobody."""
    code = secrets.token_urlsafe(_BYTES)
    values = {"hash": hash_code(code), "kind": kind, "details": Jsonb(details or {}), "seconds": seconds}
    await tx.execute(_ADD, **values)
    return code


async def take_code(database: Database, code: str, kind: Kind) -> TakenCode | None:
    """Returns whose code it is; None if there is none, as it was taken or has expired. It is gone afterwards."""
    return await database.fetch_one(NO_USER, _TAKE, TakenCode, hash=hash_code(code), kind=kind)


def hash_code(code: str) -> bytes:
    return hashlib.sha256(code.encode(errors="surrogatepass")).digest()
