"""Which secrets are too easy to guess."""

import base64
import secrets
from collections.abc import Callable

import pytest

from common.tokens import is_weak


@pytest.mark.parametrize(
    "secret",
    [
        "secret",
        "4f1d0a76c2b95e83d7fa61c90b3e248",
        "a" * 64,
        "password1" * 4,
        "Password1password1PASSWORD1password1",
        "0123456789abcdef" * 4,
        "abcdefghijklmnopqrstuvwxyz0123456789",
        "9876543210zyxwvutsrqponmlkjihgfedcba",
        "a1b2c3d4e5f6g7h8i9j0k1l2m3n4o5p6",
        "letmein-letmein-letmein-letmein-letmein",
        "administratoradministrator123456",
        "2468" * 16,
        "change-me-to-a-long-random-text-of-your-own",
        "CHANGE_ME_0123456789abcdef0123456789abcdef",
        "example-0123456789abcdef0123456789abcdef",
    ],
)
def test_weak(secret: str) -> None:
    assert is_weak(secret)


def test_random_secrets_are_not_weak() -> None:
    """None of 500 of each kind: of what openssl and Python make, and of digits only."""
    makers: list[Callable[[], str]] = [
        lambda: "dadfcbaccdbf89dfcebfaecac4ccbceb",  # hardly a digit: one of some hundred thousand
        lambda: secrets.token_hex(16),
        lambda: secrets.token_hex(32),
        lambda: secrets.token_hex(32).upper(),
        lambda: secrets.token_urlsafe(32),
        lambda: base64.b64encode(secrets.token_bytes(24)).decode(),
        lambda: base64.b32encode(secrets.token_bytes(32)).decode(),
        lambda: "".join(secrets.choice("0123456789") for _ in range(40)),
    ]
    assert [secret for make in makers for _ in range(500) if is_weak(secret := make())] == []
