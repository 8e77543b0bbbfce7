"""A server that checks its callers, and the tokens that it accepts."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.processes import ServiceProcess
from tests.tokens import ISSUER, MCP_TOKEN_SECRET, OWN_ISSUER, SigningKey, key_endpoint, minted

AUDIENCE = "https://todo.example/mcp"
METADATA = "/.well-known/oauth-protected-resource/mcp"
RSA, EC, ED = SigningKey("RS256", "rsa"), SigningKey("ES256", "ec"), SigningKey("EdDSA", "ed")

# One valid call of each tool.
ARGUMENTS: dict[str, dict[str, Any]] = {
    "add_task": {"title": "x"},
    "list_tasks": {},
    "complete_task": {"task_id": 1},
    "update_task": {"task_id": 1, "title": "x"},
    "delete_task": {"task_id": 1},
}


def own(**claims: Any) -> str:
    return minted(**{"key": MCP_TOKEN_SECRET, "iss": OWN_ISSUER, "aud": AUDIENCE} | claims)


def theirs(**claims: Any) -> str:
    return RSA.mint(**{"aud": AUDIENCE} | claims)


@contextmanager
def running(database_url: str, log: Path) -> Iterator[ServiceProcess]:
    """With an identity provider; its log at its most talkative holds no secret in the end."""
    with key_endpoint(RSA, EC, ED) as endpoint:
        server = ServiceProcess(
            "mcp_server",
            "MCP_PORT",
            log,
            DATABASE_URL=database_url,
            AUTH_MODE="jwt",
            MCP_URL=AUDIENCE,
            MCP_TOKEN_SECRET=MCP_TOKEN_SECRET,
            AUTH_JWKS_URL=endpoint.url,
            AUTH_ISSUER=ISSUER,
            LOG_LEVEL="DEBUG",
            LOG_FORMAT="text",
        )
        server.start()
        server.wait_until_ready()
        yield server
        assert server.end() == 0
    for word in ("Traceback", " ERROR ", "AUTH_MODE=none", "postgresql://", "eyJ", "Bearer ", MCP_TOKEN_SECRET):
        assert word not in server.log_text, server.log_text
