"""Whose request it is. Without a token of the backend's nothing is served, in every mode."""

import time

from common.tokens import ISSUER, SharedSecret, Tokens, make_token
from common.tool_server.identity import Verifier
from workspace.settings import Settings

_OPEN = ("/health", "/ready", "/metrics")


def verifier(settings: Settings) -> Verifier:
    return Verifier(Tokens({ISSUER: SharedSecret(_secret(settings))}, audience=settings.workspace_url))


def needs_token(path: str) -> bool:
    return path not in _OPEN


def own_token(settings: Settings, *, subject: str) -> str:
    """A token for the workspace's own first requests."""
    return make_token(_secret(settings), subject, audience=settings.workspace_url, expires=int(time.time()) + 60)


def _secret(settings: Settings) -> str:
    return settings.workspace_token_secret.get_secret_value()
