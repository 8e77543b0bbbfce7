"""Passwords of accounts that tests store."""

from functools import cache

from argon2 import PasswordHasher

PASSWORD = "correct horse battery"
_HASHER = PasswordHasher(time_cost=3, memory_cost=65_536, parallelism=1)


@cache
def hash_password(password: str) -> str:
    """Returns a hash as the backend makes it."""
    return _HASHER.hash(password)
