"""The contract of the two services beside the tool schemas: which tokens hold, and how ours are made. No settings."""

from common.tokens.checked import Keys, SharedSecret, Tokens, is_user_id
from common.tokens.key_set import KeySet, unprotected
from common.tokens.made import BACKEND, ISSUER, is_from_backend, make_call_token, make_token

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
