"""The address of a calendar. Its secret opens the calendar, so only the hash of the secret is stored."""

import secrets
from hashlib import sha256

from backend.users import profiles
from common.database import Database

TEMPLATE = "/calendar/{secret}.ics"
"""The path as it is logged: the secret is in no log, trace or metric."""
_SECRET_BYTES = 32
_ENDING = ".ics"


async def create_address(database: Database, user_id: str, base_url: str) -> str:
    secret = secrets.token_urlsafe(_SECRET_BYTES)
    await profiles.set_calendar(database, user_id, _hash_secret(secret))
    return base_url + TEMPLATE.replace("{secret}", secret)


async def find_user(database: Database, name: str) -> str | None:
    # What cannot be a secret is looked for, too: an address that opens nothing takes as long as any other.
    user_id = await profiles.find_user_of_calendar(database, _hash_secret(name.removesuffix(_ENDING)))
    return user_id if name.endswith(_ENDING) else None


def _hash_secret(secret: str) -> bytes:
    """Hashes a secret; random as it is, it needs neither salt nor many rounds."""
    return sha256(secret.encode()).digest()
