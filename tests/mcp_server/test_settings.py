import base64
import os
import secrets
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import redirect_stderr
from io import StringIO
from pathlib import Path

import psycopg
import pytest

from backend import process as backend_process
from backend.model.providers import resolve
from backend.settings import read_settings as read_backend_settings
from mcp_server import process
from mcp_server.__main__ import main
from mcp_server.settings import read_settings
from service.environment import SettingsInvalid
from service.tokens import is_weak
from tests.logins import as_admin
from tests.tokens import IDP_SECRET, ISSUER, MCP_TOKEN_SECRET

ROOT = Path(__file__).resolve().parent.parent.parent
URL = "postgresql://todo@127.0.0.1:1/todo"
BEYOND = (
    "AUTH_MODE=none checks nobody, so MCP_HOST must be a loopback address: set MCP_HOST=127.0.0.1, "
    "or AUTH_NONE_BEYOND_LOOPBACK=true where only this machine can reach the port."
)
WEAK = "is too easy to guess: make one with openssl rand -hex 32."
GUESSED = [
    "secret",
    MCP_TOKEN_SECRET[:31],
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
]
MCP_URL = "MCP_URL must be this server's address as clients spell it, https://host/mcp."
MISSPELT = [
    "127.0.0.1:8001/mcp",
    "ftp://host/mcp",
    "http://host/mcp/",
    "http://host",
    "http://HOST/mcp",
    "https://host:443/mcp",
]
MAX_AGE = "AUTH_JWKS_MAX_AGE_SECONDS must be a whole number from 1 to 86400."
KEYS = "AUTH_JWKS_URL must be the address of your identity provider's keys, https://…."


def test_a_random_secret_with_hardly_a_digit_is_none_of_words() -> None:
    assert not is_weak("dadfcbaccdbf89dfcebfaecac4ccbceb")  # one of some hundred thousand


def test_no_random_secret_is_refused() -> None:
    """None of 1,000 of each kind: of what openssl and Python make, and of digits only."""
    makers: list[Callable[[], str]] = [
        lambda: secrets.token_hex(16),
        lambda: secrets.token_hex(32),
        lambda: secrets.token_hex(32).upper(),
        lambda: secrets.token_urlsafe(32),
        lambda: base64.b64encode(secrets.token_bytes(24)).decode(),
        lambda: base64.b64encode(secrets.token_bytes(32)).decode(),
        lambda: base64.b32encode(secrets.token_bytes(32)).decode(),
        lambda: "".join(secrets.choice("0123456789") for _ in range(40)),
    ]
    refused = [secret for make in makers for _ in range(1_000) if is_weak(secret := make())]
    assert refused == []


def test_a_long_secret_is_looked_at_in_linear_time() -> None:
    def seconds(text: str) -> float:
        started = time.thread_time()
        is_weak(text)
        return time.thread_time() - started

    for pattern in ("aB1-", "abcdefgh", "Aa"):
        short, long = (min(seconds(pattern * number) for _ in range(3)) for number in (10_000, 40_000))
        assert long < 8 * short


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith(("MCP_", "AUTH_", "ALLOWED_", "LOG_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("DATABASE_URL", URL)


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        (
            "DATABASE_URL",
            "",
            "DATABASE_URL is not set: .env.example says what it is.",
        ),
        (
            "DATABASE_URL",
            "mysql://secret@host/todo",
            "DATABASE_URL must be the address of a PostgreSQL database, postgresql://….",
        ),
        (
            "DATABASE_URL",
            "postgresql://user:secret@host:port/todo",
            "DATABASE_URL must be the address of a PostgreSQL database, postgresql://….",
        ),
        ("MCP_PORT", "http", "MCP_PORT must be a whole number from 0 to 65535."),
        ("MCP_PORT", "70000", "MCP_PORT must be a whole number from 0 to 65535."),
        ("MCP_HOST", "0.0.0.0", BEYOND),
        ("MCP_HOST", "::", BEYOND),
        ("MCP_HOST", "todo.example", BEYOND),
        (
            "AUTH_MODE",
            "jwt",
            "AUTH_MODE=jwt needs MCP_TOKEN_SECRET, as the backend has it: make one with openssl rand -hex 32.",
        ),
        *(("MCP_TOKEN_SECRET", secret, f"MCP_TOKEN_SECRET {WEAK}") for secret in GUESSED),
        *(("AUTH_JWT_SECRET", secret, f"AUTH_JWT_SECRET {WEAK}") for secret in GUESSED),
        *(("MCP_URL", url, MCP_URL) for url in MISSPELT),
        ("AUTH_JWKS_URL", "keys.json", KEYS),
        ("AUTH_JWKS_MAX_AGE_SECONDS", "86401", MAX_AGE),
        ("AUTH_JWKS_MAX_AGE_SECONDS", "0", MAX_AGE),
        ("AUTH_JWKS_URL", "file:///etc/keys", KEYS),
        ("AUTH_MODE", "open", "AUTH_MODE must be none or jwt."),
        ("LOG_LEVEL", "LOUD", "LOG_LEVEL must be DEBUG, INFO, WARNING or ERROR."),
        ("AUTH_NONE_BEYOND_LOOPBACK", "perhaps", "AUTH_NONE_BEYOND_LOOPBACK must be true or false."),
    ],
)
def test_what_cannot_work_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, sentence: str
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(SettingsInvalid) as refusal:
        read_settings()
    assert str(refusal.value) == sentence


def test_defaults() -> None:
    settings = read_settings()
    assert (settings.mcp_host, settings.mcp_port, settings.auth_mode) == ("127.0.0.1", 8001, "none")
    assert settings.allowed_hosts == settings.allowed_origins == ()


JWT = {"AUTH_MODE": "jwt", "MCP_TOKEN_SECRET": MCP_TOKEN_SECRET}
PROVIDER = {**JWT, "AUTH_JWT_SECRET": IDP_SECRET, "AUTH_ISSUER": ISSUER}
BOTH = "AUTH_JWT_SECRET and AUTH_JWKS_URL are both set: keep the one your identity provider signs with."
SAME = "AUTH_JWT_SECRET and MCP_TOKEN_SECRET must differ: make each with openssl rand -hex 32."
NO_ISSUER = "AUTH_ISSUER must be the iss of your identity provider's tokens, and other than todo-assistant."


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"AUTH_JWKS_URL": "https://idp.example/keys"}, BOTH),
        ({"AUTH_JWT_SECRET": MCP_TOKEN_SECRET}, SAME),
        ({"AUTH_ISSUER": ""}, NO_ISSUER),
        ({"AUTH_ISSUER": "todo-assistant"}, NO_ISSUER),
        ({"AUTH_JWT_SECRET": "", "AUTH_JWKS_URL": "https://idp.example/keys", "AUTH_ISSUER": ""}, NO_ISSUER),
    ],
)
def test_an_identity_provider_that_cannot_work_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, changed: dict[str, str], sentence: str
) -> None:
    for name, value in (PROVIDER | changed).items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SettingsInvalid) as refusal:
        read_settings()
    assert str(refusal.value) == sentence


@pytest.mark.parametrize(
    ("settings", "authorization_server"),
    [
        (JWT, None),
        (JWT | {"AUTH_ISSUER": ISSUER}, None),
        (PROVIDER, ISSUER),
        (PROVIDER | {"AUTH_ISSUER": "my-login"}, None),
        (JWT | {"AUTH_JWKS_URL": "http://keys:8080/jwks", "AUTH_ISSUER": f"{ISSUER}/"}, f"{ISSUER}/"),
    ],
)
def test_where_tokens_come_from(
    monkeypatch: pytest.MonkeyPatch, settings: dict[str, str], authorization_server: str | None
) -> None:
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    assert read_settings().authorization_server == authorization_server


def test_who_checks_callers_may_listen_anywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (JWT | {"MCP_HOST": "0.0.0.0"}).items():
        monkeypatch.setenv(name, value)
    assert read_settings().mcp_host == "0.0.0.0"


def test_secrets_are_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in PROVIDER.items():
        monkeypatch.setenv(name, value)
    shown = repr(read_settings())
    assert MCP_TOKEN_SECRET not in shown
    assert IDP_SECRET not in shown


def test_lists_are_separated_by_commas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALLOWED_HOSTS", "mcp, todo.example,")
    assert read_settings().allowed_hosts == ("mcp", "todo.example")


@pytest.mark.parametrize("host", ["127.0.0.1", "127.3.2.1", "localhost", "::1"])
def test_loopback_needs_no_permission(monkeypatch: pytest.MonkeyPatch, host: str) -> None:
    monkeypatch.setenv("MCP_HOST", host)
    assert read_settings().mcp_host == host


def test_a_container_may_listen_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MCP_HOST", "0.0.0.0")
    monkeypatch.setenv("AUTH_NONE_BEYOND_LOOPBACK", "true")
    assert read_settings().mcp_host == "0.0.0.0"


def test_the_address_of_the_database_is_never_shown() -> None:
    assert "todo@" not in repr(read_settings())


def ended(monkeypatch: pytest.MonkeyPatch, *arguments: str, **settings: str) -> str:
    """The sentence with which a start is refused."""
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "argv", ["mcp_server", *arguments])
    with pytest.raises(SystemExit) as end, redirect_stderr(StringIO()) as errors:
        main()
    assert end.value.code == os.EX_CONFIG
    (sentence,) = errors.getvalue().splitlines()
    return sentence


def test_a_port_in_use_is_named_in_one_line_and_a_code() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        command = [sys.executable, "-m", "mcp_server"]
        environment = os.environ | {"MCP_PORT": port}
        process = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=30)
    assert process.returncode == 1
    assert process.stderr.startswith(f"Cannot listen on 127.0.0.1 port {port} (Address already in use)")
    assert len(process.stderr.splitlines()) == 1


@pytest.mark.parametrize("arguments", [[], ["check"]])
def test_settings_that_cannot_work_end_the_start(monkeypatch: pytest.MonkeyPatch, arguments: list[str]) -> None:
    assert ended(monkeypatch, *arguments, DATABASE_URL="").startswith("DATABASE_URL is not set")


@pytest.mark.parametrize("mode", [{}, JWT])
def test_a_database_without_row_level_security_is_not_served(
    monkeypatch: pytest.MonkeyPatch, fresh_database_url: str, mode: dict[str, str]
) -> None:
    with psycopg.connect(as_admin(fresh_database_url)) as connection:
        connection.execute("ALTER TABLE tasks DISABLE ROW LEVEL SECURITY")
    sentence = ended(monkeypatch, DATABASE_URL=fresh_database_url, MCP_PORT="0", **mode)
    assert sentence.startswith("Row-level security does not keep people's rows apart in the table tasks: ")


@pytest.mark.parametrize(
    ("keys", "warned"), [("http://idp.example/keys", True), ("https://idp.example/keys", False), (None, False)]
)
def test_keys_that_can_be_forged_on_their_way_are_warned_of_at_start(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, keys: str | None, warned: bool
) -> None:
    identity = {"AUTH_JWKS_URL": keys, "AUTH_ISSUER": ISSUER, "AUTH_AUDIENCE": "https://todo.example"} if keys else {}
    for name, value in (JWT | identity).items():
        monkeypatch.setenv(name, value)
    process._announce(read_settings(), "http://127.0.0.1:8001")
    assert ("AUTH_JWKS_URL is http://" in caplog.text) == warned
    if keys:
        caplog.clear()
        backend = read_backend_settings()
        backend_process._announce(backend, resolve(backend), (), "http://127.0.0.1:8000")
        assert ("AUTH_JWKS_URL is http://" in caplog.text) == warned
