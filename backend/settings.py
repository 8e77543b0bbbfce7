import os
import re
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, AliasChoices, Field, SecretStr
from pydantic_core import PydanticCustomError
from pydantic_settings import BaseSettings

from common.child_environment import RENAMED
from common.environment import CONFIG, CommaSeparated
from common.settings import WRONG_ISSUER, Secret, ServiceSettings, is_http, per_person, read_service
from common.tokens import ISSUER

ProviderName = Literal[
    "cerebras",
    "openai",
    "anthropic",
    "gemini",
    "groq",
    "mistral",
    "openrouter",
    "ollama",
    "vllm",
    "lmstudio",
    "llamacpp",
    "offline",
    "custom",
]
ToolCalls = Literal["streamed", "whole", "text"]
Roles = Literal["any", "alternate"]
SHUTDOWN_SECONDS = 15.0
"""How long a process that ends may take to store the outcomes of its runs; after that others do."""


_FILE = re.compile(r"/chats/[^/]+/files/")
_CHATS, _CONVERSATION = ("/chat", "/chat/stream"), 4  # there all that was said so far comes with each message


def _address(url: str) -> str:
    """Checks that an address can be a page's, and removes the slash at its end."""
    if not is_http(url) or "?" in url or "#" in url:
        raise PydanticCustomError("setting", "must be the address people reach the page by, https://…")
    return url.rstrip("/")


class AddressSettings(BaseSettings):
    """Where the backend is, and whether people sign in there."""

    model_config = CONFIG

    auth_mode: Literal["none", "jwt"] = "none"
    backend_host: str = "127.0.0.1"
    backend_port: int = Field(default=8000, ge=0, le=65535)
    backend_url: Annotated[str, AfterValidator(_address)] | None = None

    @property
    def address(self) -> str:
        """The address of the backend that is set, otherwise the one on this machine."""
        return self.backend_url or f"http://localhost:{self.backend_port}"


class ServersSettings(BaseSettings):
    """Where the other MCP servers are written down."""

    model_config = CONFIG

    mcp_servers_file: Path | None = None


class ModelSettings(BaseSettings):
    """Which model answers, and what it is sent."""

    model_config = CONFIG

    llm_provider: ProviderName | None = None
    llm_base_url: str | None = None
    llm_api_key: SecretStr | None = None
    llm_model: str | None = None
    llm_models: CommaSeparated = ()
    llm_temperature: float = Field(default=0.7, ge=0, le=2)
    llm_max_tokens: int = Field(default=1000, ge=1)
    llm_agent_max_tokens: int | None = Field(default=None, ge=1)
    llm_first_token_seconds: float = Field(default=300, gt=0)
    llm_silence_seconds: float = Field(default=120, gt=0)
    limit_answer_chars: int = Field(default=400_000, ge=1_000)
    llm_tool_calls: ToolCalls = "streamed"
    llm_roles: Roles | None = None
    llm_omit: CommaSeparated = ()
    history_tokens: int | None = Field(default=None, ge=1_000)
    cerebras_api_key: SecretStr | None = None
    openai_api_key: SecretStr | None = None
    anthropic_api_key: SecretStr | None = None
    gemini_api_key: SecretStr | None = None
    mistral_api_key: SecretStr | None = None
    groq_api_key: SecretStr | None = None
    openrouter_api_key: SecretStr | None = None
    offline_url: str = "http://127.0.0.1:8002/v1"


def _formerly(name: str) -> Any:
    """The field of a setting that may still be set by its former name."""
    return Field(validation_alias=AliasChoices(RENAMED[name], name))


def _four_fifths(connections: int) -> int:
    """Returns four fifths: a run's reader holds one connection, and the rest is for other requests."""
    return max(1, connections * 4 // 5)


class Settings(AddressSettings, ServersSettings, ModelSettings, ServiceSettings):
    """The backend's configuration; every field is an environment variable of the same name."""

    prefix: ClassVar[str] = "BACKEND"

    backend_workers: int = Field(default=1, ge=1, le=64)
    mcp_internal_url: str | None = None

    agents: Literal["auto", "on", "off"] = "auto"
    workspace_url: str | None = None
    workspace_token_secret: Secret | None = None
    limit_agent_runs: int | None = per_person(50)
    agent_model_turns: int = Field(default=30, ge=1)

    auth_audience: str | None = None

    limit_runs_per_minute: Annotated[int | None, _formerly("LIMIT_TURNS_PER_MINUTE")] = per_person(60)
    limit_running_runs: Annotated[int | None, _formerly("LIMIT_RUNNING_TURNS")] = per_person(4)
    limit_runs_at_once: Annotated[int, _formerly("LIMIT_TURNS_AT_ONCE")] = Field(
        default_factory=lambda given: _four_fifths(given["limit_connections"]), ge=1
    )
    limit_lag_seconds: float = Field(default=0.02, gt=0)
    limit_run_seconds: Annotated[float, _formerly("LIMIT_TURN_SECONDS")] = Field(default=600, gt=0)
    limit_runs_per_day: Annotated[int | None, _formerly("LIMIT_TURNS_PER_DAY")] = per_person(1_000)
    limit_conversations: int | None = per_person(5_000)
    limit_requests_per_minute: int | None = per_person(600)
    limit_calendar_reads_per_minute: int | None = per_person(10)
    limit_message_chars: int = Field(default=8_000, ge=1)
    limit_file_bytes: int = Field(default=10_000_000, ge=1)

    approvals: CommaSeparated = ("bulk", "agents", "connectors")

    chatkit_widget: Literal["auto", "on", "off"] = "auto"
    chatkit_domain_key: str | None = None

    mcp_resend_seconds: float = Field(default=20.0, gt=0)
    tool_wait_seconds: float = Field(default=10.0, gt=0)

    def largest_body(self, method: str, path: str) -> int:
        """Returns how many bytes the body of a request may have.

        An uploaded file has a limit of its own; at `/chat`, where each message comes with the conversation so far, the
        limit is four times the usual one.
        """
        if method == "PUT" and _FILE.match(path):
            return self.limit_file_bytes
        return super().largest_body(method, path) * (_CONVERSATION if path in _CHATS else 1)

    def problem(self) -> str | None:
        """Returns a sentence about settings that do not fit together; None if they do."""
        if self.has_workspace and self.workspace_token_secret is None:
            return (
                "WORKSPACE_URL needs WORKSPACE_TOKEN_SECRET, with the same value in both services. Or set AGENTS=off."
            )
        if self.workspace_token_secret is not None and self.workspace_token_secret in self._other_secrets:
            return "WORKSPACE_TOKEN_SECRET must differ from the other secrets. Make one with `openssl rand -hex 32`."
        return super().problem()

    @property
    def has_workspace(self) -> bool:
        """Whether agents may work, once the workspace answers."""
        return self.agents != "off" and self.workspace_url is not None

    @property
    def _other_secrets(self) -> tuple[SecretStr | None, ...]:
        return self.mcp_token_secret, self.auth_jwt_secret

    def problem_with_tokens(self) -> str | None:
        """Returns a sentence about invalid settings of AUTH_MODE=jwt; None if they are valid."""
        if bool(self.auth_jwt_secret) == bool(self.auth_jwks_url):
            return "AUTH_MODE=jwt needs either AUTH_JWT_SECRET or AUTH_JWKS_URL to check tokens."
        for name in ("auth_issuer", "auth_audience", "mcp_token_secret"):
            if not getattr(self, name):
                return f"AUTH_MODE=jwt needs {name.upper()}."
        if self.auth_issuer == ISSUER:
            return WRONG_ISSUER
        if self.auth_audience == self.mcp_url:
            return "AUTH_AUDIENCE must differ from MCP_URL, or tokens for one service would work at the other."
        if self.auth_jwt_secret == self.mcp_token_secret:
            return "AUTH_JWT_SECRET and MCP_TOKEN_SECRET must differ. Make the second with `openssl rand -hex 32`."
        return None


def renamed_settings() -> list[str]:
    """Returns a sentence for each setting that the environment has by its former name."""
    return [
        f"{name} is called {now}; the old name is read until the next release"
        for name, now in RENAMED.items()
        if os.environ.get(name)
    ]


def read_settings() -> Settings:
    """Reads the settings from the environment. Raises `SettingsInvalid` if they cannot work."""
    return read_service(Settings)
