"""The contract of the two services beside the tool schemas: which tokens hold, and how ours are made. No settings."""

from common.tokens.access_tokens import (
    BACKEND,
    ISSUER,
    Keys,
    SharedSecret,
    Tokens,
    is_from_backend,
    is_user_id,
    make_call_token,
    make_token,
)
from common.tokens.key_set import KeySet, unprotected

__all__ = [
    "BACKEND",
    "ISSUER",
    "KeySet",
    "Keys",
    "SharedSecret",
    "Tokens",
    "is_from_backend",
    "is_user_id",
    "make_call_token",
    "make_token",
    "unprotected",
]
