"""`./todo token`, with the environment and `.env` that `up` has too."""

import os
import stat

import jwt
import pytest

from cli import data_dir

pytestmark = pytest.mark.long

SECRET = "5f1e0c7ab94d2863e7f0a1d94cb8536290de71fa38c6b450"


@pytest.fixture
def token(start, tmp_path):
    """In a data directory of its own: the first start of `up` makes a secret there."""

    def run(*arguments: str, **variables: str) -> tuple[str, int]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("MCP_", "AUTH_"))}
        environment = kept | {"NO_COLOR": "1", "MCP_TOKEN_SECRET": SECRET} | variables
        process = start(
            "-m", "cli", "token", "--user", "alice", "--data-dir", str(tmp_path), *arguments, env=environment
        )
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
        ([], {"MCP_URL": "http://localhost:8001/mcp", "MCP_PORT": "9001"}, "http://127.0.0.1:9001/mcp"),
        (["--mcp-port", "9002"], {"MCP_URL": "https://todo.example/mcp"}, "https://todo.example/mcp"),
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
    assert output.startswith("error: argument --days: ")
    assert f"{days} is no number of days from 1 to 36500" in output


@pytest.mark.parametrize("name", ["", "a\nb"])
def test_nobody_can_be_called_what_no_token_may_name(token, name):
    output, status = token("--user", name)
    assert status == 2
    assert "nobody's name" in output


def test_it_is_signed_with_the_secret_that_up_made_there(token, tmp_path):
    made = data_dir.token_secret(tmp_path)
    output, status = token(MCP_TOKEN_SECRET="")
    assert status == 0
    assert jwt.decode(output, made, algorithms=["HS256"], audience="http://127.0.0.1:8001/mcp")["sub"] == "alice"


def test_a_directory_has_one_secret_that_only_its_owner_reads(tmp_path):
    made = data_dir.token_secret(tmp_path)
    assert data_dir.token_secret(tmp_path) == made
    assert data_dir.token_secret(tmp_path / ".") == made
    (path,) = tmp_path.iterdir()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    other = tmp_path / "other"
    other.mkdir()
    assert data_dir.token_secret(other) != made


def test_without_a_secret_it_says_what_to_do(token):
    output, status = token(MCP_TOKEN_SECRET="")
    assert status == 1
    assert output == (
        "error: MCP_TOKEN_SECRET is not set: ./todo up makes one for its data directory at its first start; make "
        "others with `openssl rand -hex 32`. With AUTH_MODE=none no token is needed."
    )
