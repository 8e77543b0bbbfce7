import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from mcp_server.settings import SettingsInvalid, read_settings

ROOT = Path(__file__).resolve().parent.parent.parent
URL = "postgresql://todo@127.0.0.1:1/todo"
BEYOND = (
    "AUTH_MODE=none checks nobody, so MCP_HOST must be a loopback address: set MCP_HOST=127.0.0.1, "
    "or AUTH_NONE_BEYOND_LOOPBACK=true where only this machine can reach the port."
)


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
            "DATABASE_URL is not set: give the address of the database, for example postgresql://user@host/todo.",
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
        ("MCP_PORT", "http", "MCP_PORT must be a port number from 0 to 65535."),
        ("MCP_PORT", "70000", "MCP_PORT must be a port number from 0 to 65535."),
        ("MCP_HOST", "0.0.0.0", BEYOND),
        ("MCP_HOST", "::", BEYOND),
        ("MCP_HOST", "todo.example", BEYOND),
        ("AUTH_MODE", "jwt", "AUTH_MODE=jwt is not built yet: set AUTH_MODE=none."),
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


def started(**settings: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | settings
    command = [sys.executable, "-m", "mcp_server"]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=30)


def test_a_refused_start_is_a_sentence_and_a_code() -> None:
    process = started(DATABASE_URL="")
    assert process.returncode == 1
    assert process.stderr.startswith("DATABASE_URL is not set")
    assert len(process.stderr.splitlines()) == 1


def test_a_port_in_use_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        process = started(MCP_PORT=str(port))
    assert process.returncode == 1
    assert process.stderr.startswith(f"Cannot listen on 127.0.0.1 port {port} (Address already in use)")
    assert len(process.stderr.splitlines()) == 1
