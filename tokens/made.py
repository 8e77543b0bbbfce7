import time

import jwt

ISSUER = "todo-assistant"


def make_token(secret: str, subject: str, *, audience: str, expires: int) -> str:
    """A token of our own (HS256) that one of the services checks; `expires` is Unix time."""
    claims = {"iss": ISSUER, "sub": subject, "aud": audience, "iat": int(time.time()), "exp": expires}
    return jwt.encode(claims, secret, algorithm="HS256")
