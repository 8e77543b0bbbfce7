import time
from collections.abc import Mapping
from typing import Any

import jwt

ISSUER = "todo-assistant"
BACKEND = "todo-assistant/backend"


def make_token(secret: str, subject: str, *, audience: str, expires: int, **claims: Any) -> str:
    """A token of our own (HS256) that one of the services checks; `expires` is Unix time."""
    own = {"iss": ISSUER, "sub": subject, "aud": audience, "iat": int(time.time()), "exp": expires}
    return jwt.encode(claims | own, secret, algorithm="HS256")


def make_call_token(secret: str, subject: str, *, audience: str, expires: int) -> str:
    """What the backend sends with a tool call for somebody: it says that the backend acts (RFC 8693, section 4.1)."""
    return make_token(secret, subject, audience=audience, expires=expires, act={"sub": BACKEND})


def is_from_backend(claims: Mapping[str, Any]) -> bool:
    """Whether a token that holds was made by the backend for a call of its own, not for a person to keep."""
    return claims.get("iss") == ISSUER and claims.get("act") == {"sub": BACKEND}
