"""Checks access tokens and creates those of the backend; they are part of the contract between the services."""

from common.tokens.access_tokens import (
    BACKEND,
    DIRECTORY,
    ISSUER,
    AccessTokenVerifier,
    Keys,
    SharedSecret,
    is_from_backend,
    is_user_id,
    make_call_token,
    make_token,
)
from common.tokens.key_set import KeySet, find_key_url_warning

__all__ = [
    "BACKEND",
    "DIRECTORY",
    "ISSUER",
    "AccessTokenVerifier",
    "KeySet",
    "Keys",
    "SharedSecret",
    "find_key_url_warning",
    "is_from_backend",
    "is_user_id",
    "make_call_token",
    "make_token",
]
