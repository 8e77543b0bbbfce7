"""Runs the services with a fixed start of their clock; users sign in with tokens."""

import os
import re
import secrets
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import jwt

from bench.processes import Server
from bench.services import serve
from cli.services.ports import HOST, find_free_port
from cli.services.settings_check import SettingsCheck
from common import child_environment
from common.clock import utc_now
from todo_client.runs import Runs

ISSUER, AUDIENCE = "https://people.example", "https://todo.example"
OFFLINE = "offline"
# Only the settings of the model are passed on, so that results can be compared.
_OF_THE_MODEL = re.compile(
    r"LLM_\w+|\w+_API_KEY|OPENAI_\w+|OFFLINE_URL|HISTORY_TOKENS|(HTTP|HTTPS|ALL|NO)_PROXY|SSL_CERT_\w+|\w+_CA_BUNDLE",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Stage:
    backend: Server
    secret: str

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.backend.port}"

    def create_token(self, user: str) -> str:
        claims = {"sub": user, "iss": ISSUER, "aud": AUDIENCE, "exp": int(time.time()) + 3_600}
        return jwt.encode(claims, self.secret, algorithm="HS256")

    async def model(self) -> dict[str, str]:
        async with Runs(self.url, token=self.create_token("nobody")) as runs:
            model = (await runs.ready())["model"]
        return {"provider": model["provider"], "name": model["name"]}


def check_settings() -> None:
    """Raises `CliError` with all that is wrong."""
    others = {name: value for name, value in os.environ.items() if not child_environment.is_setting(name)}
    settings = {**others, **_select_model_settings(), "DATABASE_URL": "postgresql:///"}
    with SettingsCheck(["backend"], settings) as check:
        check.finish()


def _select_model_settings() -> dict[str, str]:
    variables = child_environment.select_variables("backend", os.environ)
    return {name: value for name, value in variables.items() if _OF_THE_MODEL.fullmatch(name)}


@asynccontextmanager
async def set_up(work: Path, database_url: str, now: datetime) -> AsyncIterator[Stage]:
    """Starts the services, whose clock begins at `now`, and the offline model if the environment chooses it."""
    secret = secrets.token_hex(32)
    both = {
        "AUTH_MODE": "jwt",
        "AUTH_ISSUER": ISSUER,
        "MCP_TOKEN_SECRET": secrets.token_hex(32),
        "DATABASE_URL": database_url,
        "TEST_CLOCK_OFFSET_SECONDS": str((now - utc_now()).total_seconds()),
    }
    settings = {**_select_model_settings(), "AUTH_JWT_SECRET": secret, "AUTH_AUDIENCE": AUDIENCE}
    async with AsyncExitStack() as stack:
        if settings.get("LLM_PROVIDER") == OFFLINE and "LLM_BASE_URL" not in settings:
            port = find_free_port()
            model = Server(work, "offline_model", port=port, OFFLINE_PORT=str(port))
            stack.push_async_callback(model.stop)
            await model.wait_until_ready("/health")
            settings["LLM_BASE_URL"] = f"http://{HOST}:{port}/v1"
        _, backend = await stack.enter_async_context(serve(work, both=both, mcp={}, backend=settings))
        yield Stage(backend, secret)
