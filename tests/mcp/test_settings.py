"""Settings that cannot work are named in one sentence."""

import os
import socket
import subprocess
import sys

import pytest

from common.environment import SettingsInvalid
from mcp_server.settings import read_settings
from tests.conftest import ROOT
from tests.processes import INHERITED
from tests.settings import example
from tests.tokens import IDP_SECRET, ISSUER, MCP_TOKEN_SECRET

URL = "postgresql://todo@127.0.0.1:1/todo"
JWT = {"AUTH_MODE": "jwt", "MCP_TOKEN_SECRET": MCP_TOKEN_SECRET}
PROVIDER = {**JWT, "AUTH_JWT_SECRET": IDP_SECRET, "AUTH_ISSUER": ISSUER}


def run(*arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
    inherited = {name: os.environ[name] for name in INHERITED if name in os.environ}
    command = [sys.executable, "-m", "mcp_server", *arguments]
    environment = {**inherited, "DATABASE_URL": URL, **settings}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"MCP_PORT": "70000"}, "MCP_PORT"),
        ({"MCP_HOST": "0.0.0.0"}, "AUTH_NONE_BEYOND_LOOPBACK"),
        ({"AUTH_MODE": "jwt"}, "MCP_TOKEN_SECRET"),
        (JWT | {"MCP_TOKEN_SECRET": "0" * 31}, "MCP_TOKEN_SECRET"),
        ({"MCP_URL": "https://host:443/mcp"}, "MCP_URL"),
        (PROVIDER | {"AUTH_JWKS_URL": "https://idp.example/keys"}, "AUTH_JWKS_URL"),
        (PROVIDER | {"AUTH_JWT_SECRET": MCP_TOKEN_SECRET}, "AUTH_JWT_SECRET"),
        (PROVIDER | {"AUTH_ISSUER": "todo-assistant"}, "AUTH_ISSUER"),
        (PROVIDER | {"MCP_HOST": "0.0.0.0"}, ""),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_settings(settings: dict[str, str], named: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """How a process ends that cannot work with them is in tests/api/test_startup.py."""
    for name in example():
        monkeypatch.delenv(name, raising=False)
    for name, value in {"DATABASE_URL": URL, **settings}.items():
        monkeypatch.setenv(name, value)
    if not named:
        read_settings()
        return
    with pytest.raises(SettingsInvalid) as invalid:
        read_settings()
    [sentence] = str(invalid.value).splitlines()
    assert named in sentence
    assert MCP_TOKEN_SECRET not in sentence


def test_a_port_in_use() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        ended = run(MCP_PORT=str(taken.getsockname()[1]))
    assert ended.returncode == 1
    [sentence] = ended.stderr.splitlines()
    assert "Address already in use" in sentence
