import sys
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr, ValidationError
from pydantic_core import PydanticCustomError
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from telemetry import logs
from tokens import ISSUER, is_weak

_Read = TypeVar("_Read", bound=BaseSettings)
ProviderName = Literal["cerebras", "openai", "ollama", "anthropic", "offline", "custom"]


def _postgres(url: SecretStr) -> SecretStr:
    from database import can_read  # here: who only makes a token does not wait for SQLAlchemy

    if not can_read(url.get_secret_value()):
        raise PydanticCustomError(
            "setting", "must be the address of a PostgreSQL database, postgresql://user@host/name"
        )
    return url


def _split(value: Any) -> Any:
    return tuple(part.strip() for part in value.split(",") if part.strip()) if isinstance(value, str) else value


CommaSeparated = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_split)]


class TokenSettings(BaseSettings):
    """What it takes to make a token for the MCP server."""

    model_config = SettingsConfigDict(env_ignore_empty=True, extra="ignore", frozen=True)

    mcp_url: str = "http://127.0.0.1:8001/mcp"
    mcp_token_secret: SecretStr | None = None


class CommandSettings(BaseSettings):
    """What the commands need that work on the stored data."""

    model_config = SettingsConfigDict(env_ignore_empty=True, extra="ignore", frozen=True)

    database_url: Annotated[SecretStr, AfterValidator(_postgres)]
    heartbeat_seconds: float = Field(default=2.0, gt=0)
    lease_seconds: float = Field(default=15.0, gt=0)


class Settings(TokenSettings, CommandSettings):
    """The backend's configuration; every field is an environment variable of the same name."""

    backend_host: str = "127.0.0.1"
    backend_port: int = Field(default=8000, ge=0, le=65535)
    backend_workers: int = Field(default=1, ge=1, le=64)

    llm_provider: ProviderName | None = None
    llm_base_url: str | None = None
    llm_api_key: SecretStr | None = None
    llm_model: str | None = None
    llm_temperature: float = Field(default=0.7, ge=0, le=2)
    llm_max_tokens: int = Field(default=1000, ge=1)
    cerebras_api_key: SecretStr | None = None
    openai_api_key: SecretStr | None = None
    anthropic_api_key: SecretStr | None = None
    offline_url: str = "http://127.0.0.1:8002/v1"

    allowed_hosts: CommaSeparated = ()
    allowed_origins: CommaSeparated = ()
    auth_mode: Literal["none", "jwt"] = "none"
    auth_none_beyond_loopback: bool = False
    auth_jwt_secret: SecretStr | None = None
    auth_jwks_url: str | None = None
    auth_issuer: str | None = None
    auth_audience: str | None = None

    limit_turns_per_minute: int | None = Field(default=None, ge=1)
    limit_running_turns: int | None = Field(default=None, ge=1)
    limit_message_chars: int = Field(default=8_000, ge=1)
    limit_request_bytes: int = Field(default=1_048_576, ge=1)

    chatkit_widget: Literal["auto", "on", "off"] = "auto"
    chatkit_domain_key: str | None = None

    mcp_resend_seconds: float = Field(default=20.0, gt=0)
    tool_wait_seconds: float = Field(default=10.0, gt=0)

    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"
    log_format: logs.Format = "auto"
    otel_exporter_otlp_endpoint: str | None = None


class SettingsInvalid(Exception):
    """One sentence for each setting that is missing or wrong, naming its environment variable."""


def read_command_settings() -> CommandSettings:
    """What a command needs of the environment; where that cannot work, the process ends with a sentence."""
    try:
        return _read(CommandSettings)
    except SettingsInvalid as error:
        sys.exit(str(error))


def read_settings() -> Settings:
    """The settings in the environment; raises `SettingsInvalid` when they cannot work."""
    settings = _read(Settings)
    if settings.heartbeat_seconds * 3 > settings.lease_seconds:
        raise SettingsInvalid(
            "LEASE_SECONDS must be at least three times HEARTBEAT_SECONDS, or live turns lose theirs."
        )
    if problem := _problem_with_none(settings) if settings.auth_mode == "none" else _problem_with_jwt(settings):
        raise SettingsInvalid(problem)
    return settings


def _read(kind: type[_Read]) -> _Read:
    try:
        return kind()
    except ValidationError as error:
        raise SettingsInvalid("\n".join(_sentence(problem) for problem in error.errors())) from None


def _problem_with_none(settings: Settings) -> str | None:
    if settings.auth_none_beyond_loopback or settings.backend_host in ("127.0.0.1", "::1", "localhost"):
        return None
    return (
        "AUTH_MODE=none checks nobody, so BACKEND_HOST must be a loopback address: set BACKEND_HOST=127.0.0.1, "
        "or AUTH_NONE_BEYOND_LOOPBACK=true where only this machine can reach the port."
    )


def _problem_with_jwt(settings: Settings) -> str | None:
    if bool(settings.auth_jwt_secret) == bool(settings.auth_jwks_url):
        return "AUTH_MODE=jwt needs one of AUTH_JWT_SECRET and AUTH_JWKS_URL: what the tokens are checked with."
    for name in ("auth_issuer", "auth_audience", "mcp_token_secret"):
        if not getattr(settings, name):
            return f"AUTH_MODE=jwt needs {name.upper()}."
    for name in ("auth_jwt_secret", "mcp_token_secret"):
        secret = getattr(settings, name)
        if secret is not None and is_weak(secret.get_secret_value()):
            return f"{name.upper()} is too weak: make one with `openssl rand -hex 32`."
    if settings.auth_issuer == ISSUER:
        return f"AUTH_ISSUER must be the iss of your identity provider's tokens, and other than {ISSUER}."
    if settings.auth_audience == settings.mcp_url:
        return "AUTH_AUDIENCE must differ from MCP_URL, or tokens for the one service would open the other."
    if settings.auth_jwt_secret == settings.mcp_token_secret:
        return "AUTH_JWT_SECRET and MCP_TOKEN_SECRET must differ: make the second with `openssl rand -hex 32`."
    return None


def _sentence(problem: Any) -> str:
    name = str(problem["loc"][0]).upper()
    if problem["type"] == "missing":
        return f"{name} is not set."
    return f"{name}: {problem['msg'][0].lower()}{problem['msg'][1:]}."
