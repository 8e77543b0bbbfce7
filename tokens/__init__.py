"""The contract of the two services beside the tool schemas: which tokens hold, and how ours are made. No settings."""

from tokens.checked import Keys, SharedSecret, Tokens, is_user_id
from tokens.key_set import KeySet
from tokens.made import ISSUER, make_token
from tokens.secrets import is_weak

__all__ = ["ISSUER", "KeySet", "Keys", "SharedSecret", "Tokens", "is_user_id", "is_weak", "make_token"]
