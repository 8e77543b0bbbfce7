"""The address of a calendar. Its secret opens the calendar, so only the hash of the secret is stored."""

import secrets
from hashlib import sha256

TEMPLATE = "/calendar/{secret}.ics"
"""The path as it is shown: the secret is in no log, trace or metric."""
_SECRET_BYTES = 32
_ENDING = ".ics"


def new_secret() -> str:
    """Generates the secret of an address, 256 random bits."""
    return secrets.token_urlsafe(_SECRET_BYTES)


def hash_of(secret: str) -> bytes:
    """Returns the hash of a secret, which is stored; random as it is, it needs neither salt nor many rounds."""
    return sha256(secret.encode()).digest()


def url(base: str, secret: str) -> str:
    """Returns the address of a calendar; `base` is the backend's own address, without a slash at its end."""
    return base + TEMPLATE.replace("{secret}", secret)


def secret_in(name: str) -> str | None:
    """Returns the secret in the last part of a path; None if it is not the name of a calendar."""
    return name.removesuffix(_ENDING) if name.endswith(_ENDING) else None
