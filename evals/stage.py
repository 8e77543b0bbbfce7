"""Runs the services with a fixed start of their clock; users sign in with tokens."""

import re
import secrets
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import jwt

from bench.processes import Server
from bench.services import serve
from cli.services.ports import HOST, find_free_port
from common import child_environment
from todo_client.runs import Runs

ISSUER, AUDIENCE = "https://people.example", "https://todo.example"
OFFLINE = "offline"
HOUR = 3600
# Only the settings of the model are passed on, so that results can be compared.
_OF_THE_MODEL = re.compile(
    r"LLM_\w+|\w+_API_KEY|OPENAI_\w+|OFFLINE_URL|HISTORY_TOKENS|(HTTP|HTTPS|ALL|NO)_PROXY|SSL_CERT_\w+|\w+_CA_BUNDLE",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Stage:
    backend: Server
    secret: str

    def person(self, name: str, zone: str) -> Runs:
        """Returns a user's connection, signed in for an hour, in a time zone."""
        claims = {"sub": name, "iss": ISSUER, "aud": AUDIENCE, "exp": int(time.time()) + HOUR}
        token = jwt.encode(claims, self.secret, algorithm="HS256")
        return Runs(f"http://{HOST}:{self.backend.port}", token=token, headers={"X-Time-Zone": zone})

    async def model(self) -> dict[str, str]:
        async with self.person("nobody", "UTC") as nobody:
            model = (await nobody.http.get("/ready")).json()["model"]
        return {"provider": model["provider"], "name": model["name"]}


@asynccontextmanager
async def offline_model(work: Path, environment: Mapping[str, str]) -> AsyncIterator[dict[str, str]]:
    """Yields the settings of the model, after starting the offline model if they choose it."""
    settings = {
        name: value
        for name, value in child_environment.select_variables("backend", environment).items()
        if _OF_THE_MODEL.fullmatch(name)
    }
    if settings.get("LLM_PROVIDER") != OFFLINE or "LLM_BASE_URL" in settings:
        yield settings
        return
    port = find_free_port()
    server = Server(work, "offline_model", port=port, OFFLINE_PORT=str(port))
    try:
        await server.wait_until_ready("/health")
        yield settings | {"LLM_BASE_URL": f"http://{HOST}:{port}/v1"}
    finally:
        await server.stop()


@asynccontextmanager
async def set_up(work: Path, database_url: str, now: datetime, model: Mapping[str, str]) -> AsyncIterator[Stage]:
    """Starts the services, whose clock begins at `now`."""
    secret = secrets.token_hex(32)
    both = {
        "AUTH_MODE": "jwt",
        "AUTH_ISSUER": ISSUER,
        "MCP_TOKEN_SECRET": secrets.token_hex(32),
        "DATABASE_URL": database_url,
        "TEST_NOW": now.isoformat(),
    }
    identity = {"AUTH_JWT_SECRET": secret, "AUTH_AUDIENCE": AUDIENCE}
    async with serve(work, both=both, mcp={}, backend={**model, **identity}) as (_, backend):
        yield Stage(backend, secret)
