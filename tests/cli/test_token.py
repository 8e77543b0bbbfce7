"""`./todo token`, with the environment and `.env` that `up` has too."""

import os

import jwt
import pytest

SECRET = "0123456789abcdef" * 4


@pytest.fixture
def token(start):
    def run(*arguments: str, **variables: str) -> tuple[str, int]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("MCP_", "AUTH_"))}
        environment = kept | {"NO_COLOR": "1", "MCP_TOKEN_SECRET": SECRET} | variables
        process = start("-m", "cli", "token", "--user", "alice", *arguments, env=environment)
        output, _ = process.communicate(timeout=60)
        return output.strip(), process.returncode

    return run


@pytest.mark.parametrize(
    ("arguments", "variables", "audience"),
    [
        ([], {}, "http://127.0.0.1:8001/mcp"),
        ([], {"MCP_PORT": "9001"}, "http://127.0.0.1:9001/mcp"),
        ([], {"MCP_URL": "https://todo.example/mcp"}, "https://todo.example/mcp"),
        (["--mcp-port", "9002"], {"MCP_URL": "http://127.0.0.1:8001/mcp"}, "http://127.0.0.1:9002/mcp"),
    ],
)
def test_it_is_for_the_server_that_up_starts_on_that_port(token, arguments, variables, audience):
    made, status = token(*arguments, **variables)
    assert status == 0
    assert jwt.decode(made, options={"verify_signature": False})["aud"] == audience


@pytest.mark.parametrize("days", ["0", "99999999999"])
def test_one_that_would_not_hold_is_not_made(token, days):
    output, status = token(f"--days={days}")
    assert status == 2
    assert output.endswith(f"{days} is no number of days from 1 to 36500")


@pytest.mark.parametrize("name", ["", "a\nb"])
def test_nobody_can_be_called_what_no_token_may_name(token, name):
    output, status = token("--user", name)
    assert status == 2
    assert "nobody's name" in output


def test_without_a_secret_it_says_what_to_do(token):
    output, status = token(MCP_TOKEN_SECRET="")
    assert status == 1
    assert output == (
        "MCP_TOKEN_SECRET is not set. AUTH_MODE=jwt needs it: make one with `openssl rand -hex 32`. "
        "With AUTH_MODE=none no token is needed."
    )
