"""Tokens that were checked once before."""

import time
from typing import Any

import jwt
import pytest

from common.tokens import LEEWAY_SECONDS, AccessTokenVerifier, OwnTokenRejected, SharedSecret, make_token
from tests.waiting import until

SECRET, ISSUER, AUDIENCE = "s" * 32, "todo-assistant", "here"


class ReplacedKeys(SharedSecret):
    """Keys of a provider that were replaced."""

    def __init__(self) -> None:
        super().__init__(SECRET)
        self.are_replaced = False

    async def find(self, _: dict[str, Any]) -> jwt.PyJWK:
        return await (SharedSecret("t" * 32) if self.are_replaced else super()).find(_)


def create_token(*, expires: float, **claims: str) -> str:
    return make_token(SECRET, "ada", audience=AUDIENCE, expires=int(expires), **claims)


async def test_a_token_of_a_replaced_key_is_rejected() -> None:
    keys = ReplacedKeys()
    verifier = AccessTokenVerifier({ISSUER: keys}, audience=AUDIENCE)
    token = create_token(expires=time.time() + 60)
    for _ in range(2):
        assert (await verifier.verify(token))["sub"] == "ada"
    keys.are_replaced = True
    with pytest.raises(jwt.InvalidSignatureError):
        await verifier.verify(token)


async def test_a_token_that_has_expired_is_rejected() -> None:
    verifier = AccessTokenVerifier({ISSUER: SharedSecret(SECRET)}, audience=AUDIENCE)
    token = create_token(expires=time.time() - LEEWAY_SECONDS + 2)

    async def is_rejected() -> bool:
        try:
            await verifier.verify(token)
        except OwnTokenRejected:
            return True
        return False

    assert not await is_rejected()
    await until(is_rejected)


@pytest.mark.parametrize("made", ["password", "jwt"])
async def test_a_token_of_ours_opens_nothing_in_another_mode(made: str) -> None:
    """Its user may be somebody else there."""
    verifier = AccessTokenVerifier({ISSUER: SharedSecret(SECRET)}, audience=AUDIENCE, mode="password")
    token = create_token(expires=time.time() + 60, auth_mode=made)
    if made == "password":
        assert (await verifier.verify(token))["sub"] == "ada"
        return
    with pytest.raises(OwnTokenRejected, match="signed in another way"):
        await verifier.verify(token)


async def test_no_more_than_the_newest_tokens_are_kept() -> None:
    verifier = AccessTokenVerifier({ISSUER: SharedSecret(SECRET)}, audience=AUDIENCE)
    for number in range(1_200):
        assert await verifier.verify(create_token(expires=time.time() + 60, jti=str(number)))
    assert len(verifier._checked) == 1_000
