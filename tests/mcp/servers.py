"""Running task servers, and the tokens that they accept."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import httpx2

from mcp_server.server import create_app
from mcp_server.settings import McpSettings
from tests.clock import set_clock
from tests.processes import ServiceProcess
from tests.serving import http_client, serve
from tests.tokens import ISSUER, MCP_TOKEN_SECRET, OWN_ISSUER, SigningKey, key_endpoint, mint_token

AUDIENCE = "https://todo.example/mcp"
METADATA = "/.well-known/oauth-protected-resource/mcp"
RSA, EC, ED = SigningKey("RS256", "rsa"), SigningKey("ES256", "ec"), SigningKey("EdDSA", "ed")
NOW = "2026-11-22T10:01:00+01:00"
"""When the servers start, a Sunday; their clocks run on from there. At noon it is tomorrow in Apia and Midway."""
COMMON = {
    "MCP_URL": AUDIENCE,
    "MCP_TOKEN_SECRET": MCP_TOKEN_SECRET,
    "TIME_ZONE": "Europe/Berlin",
    "LOG_LEVEL": "DEBUG",
    "LOG_FORMAT": "text",
}
OWN = {"mcp_url": AUDIENCE, "mcp_token_secret": MCP_TOKEN_SECRET}
"""Of a server in the process of the tests which accepts tokens of our own."""
SECRETS = ("postgresql://", "eyJ", "Bearer ", MCP_TOKEN_SECRET)

# One valid call of each tool.
ARGUMENTS: dict[str, dict[str, Any]] = {
    "add_task": {"title": "x"},
    "list_tasks": {},
    "complete_task": {"task_id": 1},
    "update_task": {"task_id": 1, "title": "x"},
    "delete_task": {"task_id": 1},
}


def own(**claims: Any) -> str:
    """A token of our own, as users make it for their MCP clients."""
    session = {"jti": "x" * 22, "scope": "tasks"}
    return mint_token(**{"key": MCP_TOKEN_SECRET, "iss": OWN_ISSUER, "aud": AUDIENCE} | session | claims)


def theirs(**claims: Any) -> str:
    """A token of the identity provider."""
    return RSA.mint(**{"aud": AUDIENCE} | claims)


@asynccontextmanager
async def serve_tools(database_url: str, **settings: Any) -> AsyncIterator[httpx2.AsyncClient]:
    """Serves the tools in the process of the tests; yields a client."""
    app = create_app(McpSettings.model_validate({"database_url": database_url, **settings}))
    async with serve(app) as url, http_client(url) as http:
        yield http


@contextmanager
def open_server(database_url: str, log: Path, **more: str) -> Iterator[ServiceProcess]:
    """Nobody signs in, but it has a secret, as `./todo up` starts it: a token makes a call another user's."""
    environment = {"DATABASE_URL": database_url, **COMMON, **set_clock(NOW), **more}
    with _running(ServiceProcess("mcp_server", "MCP_PORT", log, **environment)) as server:
        yield server


@contextmanager
def sign_in_server(database_url: str, log: Path) -> Iterator[ServiceProcess]:
    with key_endpoint(RSA, EC, ED) as endpoint:
        identity = {"AUTH_MODE": "jwt", "AUTH_JWKS_URL": endpoint.url, "AUTH_ISSUER": ISSUER}
        environment = {"DATABASE_URL": database_url, **COMMON, **set_clock(NOW), **identity}
        server = ServiceProcess("mcp_server", "MCP_PORT", log, **environment)
        with _running(server):
            yield server


@contextmanager
def _running(server: ServiceProcess) -> Iterator[ServiceProcess]:
    """Whatever the tests send, the log at its most talkative holds no error and no secret in the end."""
    server.start()
    server.wait_until_ready()
    yield server
    assert server.end() == 0
    for word in ("Traceback", " ERROR ", *SECRETS):
        assert word not in server.log_text, server.log_text
