"""Which of the provider's users may use this server, by OIDC_ALLOWED."""

from collections.abc import Mapping, Sequence
from typing import Any

EVERYBODY = "*"
_EMAIL, _DOMAIN, _VERIFIED = "email", "email_domain", "email_verified"


def is_allowed(claims: Mapping[str, Any], rules: Sequence[str]) -> bool:
    """Whether one of the rules matches the claims of a user."""
    return any(_matches(claims, rule) for rule in rules)


def _matches(claims: Mapping[str, Any], rule: str) -> bool:
    if rule == EVERYBODY:
        return True
    claim, _, wanted = (part.strip() for part in rule.partition("="))
    if claim in (_EMAIL, _DOMAIN):  # anybody could enter an address that nobody verifies
        email = claims.get(_EMAIL)
        if claims.get(_VERIFIED) is not True or not isinstance(email, str):
            return False
        found = email if claim == _EMAIL else email.rpartition("@")[2]
        return found.lower() == wanted.lower()
    value = claims.get(claim)
    values = value if isinstance(value, list) else [value]
    return any(isinstance(one, str) and one == wanted for one in values)
