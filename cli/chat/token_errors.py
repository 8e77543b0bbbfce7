"""What is wrong with the TODO_TOKEN that a server has rejected, as far as the token itself tells."""

import base64
import json
import re
import time
from datetime import UTC, datetime
from typing import Any

_OWN_ISSUER = "todo-assistant"
_SESSION = "todo-assistant/session"
_API = "todo-assistant/api"
_SENDABLE = re.compile("[!-~]+")  # in a header
_LAST_SECOND = 253_402_300_800  # of the year 9999
_NEEDED = "Set TODO_TOKEN to a token that you make on the page, or to one of your identity provider."


def is_sendable(token: str) -> bool:
    return _SENDABLE.fullmatch(token) is not None


def explain_rejection(token: str | None) -> str:
    """Returns a sentence with claims of the token, but not the token itself. Only the server verifies them."""
    if token is None:
        return f"You are not signed in. {_NEEDED}"
    claims = _read_claims(token)
    if claims is None:
        return f"You are not signed in: TODO_TOKEN is not a token (JWT). {_NEEDED}"
    return f"You are not signed in: the token in TODO_TOKEN {_describe(claims)}"


def _describe(claims: dict[str, Any]) -> str:
    issuer, audience = claims.get("iss"), claims.get("aud")
    audiences = ", ".join(map(str, audience)) if isinstance(audience, list) else audience
    if (expired := _read_time(claims, "exp")) and expired < time.time():
        return f"expired at {_format_time(expired)}. Get a new one."
    if (begins := _read_time(claims, "nbf")) and begins > time.time():
        return f"is valid only from {_format_time(begins)}. Is the clock of this machine right?"
    if issuer == _OWN_ISSUER and audience == _SESSION:
        return f"is the page's session cookie, which works only in a browser. {_NEEDED}"
    if issuer == _OWN_ISSUER and _API in (audience if isinstance(audience, list) else [audience]):
        return f"was ended, or is of another server. {_NEEDED}"
    if issuer == _OWN_ISSUER:
        return f"is for {audiences}, and works only there. {_NEEDED}"
    expected = "Compare that with AUTH_ISSUER and AUTH_AUDIENCE of the server, and check its keys."
    return f"is from {issuer} for {audiences}. {expected}"


def _read_claims(token: str) -> dict[str, Any] | None:
    try:
        _, payload, _ = token.split(".")
        claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    except (ValueError, RecursionError):
        return None
    return claims if isinstance(claims, dict) else None


def _read_time(claims: dict[str, Any], name: str) -> float | None:
    value = claims.get(name)
    return value if isinstance(value, int | float) and 0 < value < _LAST_SECOND else None


def _format_time(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M} UTC"
