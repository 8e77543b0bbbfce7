"""What `./todo chat` says of a token that the server has rejected."""

from functools import partial

import pytest

from cli.chat.token_errors import explain_rejection
from tests.tokens import mint_token

mint = partial(mint_token, "x" * 32, iss="https://other.example", aud="https://todo.example", exp=4_000_000_000)
mint_own = partial(mint, iss="todo-assistant")


@pytest.mark.parametrize(
    ("token", "reason"),
    [
        ("secret", "TODO_TOKEN is not a token (JWT)."),
        ("a.b.c", "TODO_TOKEN is not a token (JWT)."),
        (mint(exp=1_764_000_000), "the token in TODO_TOKEN expired at 2025-11-24 16:00 UTC."),
        (mint(nbf=2_000_000_000), "the token in TODO_TOKEN is valid only from 2033-05-18 03:33 UTC."),
        (mint_own(aud="http://127.0.0.1:8001/mcp"), "is for http://127.0.0.1:8001/mcp, and works only there."),
        (mint_own(aud=["todo-assistant/api", "http://127.0.0.1:8001/mcp"]), "was ended, or is of another server."),
        (mint_own(aud="todo-assistant/session"), "is the page's session cookie"),
        (mint(), "is from https://other.example for"),
        (mint(aud=["one", "two"]), "for one, two. Compare that with AUTH_ISSUER and AUTH_AUDIENCE"),
    ],
    ids=[
        "no token",
        "no claims",
        "expired",
        "early",
        "of the services",
        "ended",
        "session",
        "other issuer",
        "several audiences",
    ],
)
def test_reason(token: str, reason: str) -> None:
    sentence = explain_rejection(token)
    assert reason in sentence
    assert len(token) < 10 or token not in sentence
