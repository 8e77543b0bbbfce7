from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, SecretStr, ValidationError
from pydantic_core import PydanticCustomError
from pydantic_settings import BaseSettings, SettingsConfigDict

ProviderName = Literal["cerebras", "openai", "ollama", "anthropic", "offline", "custom"]


def _postgres(url: SecretStr) -> SecretStr:
    if not url.get_secret_value().startswith(("postgres://", "postgresql://")):
        raise PydanticCustomError(
            "setting", "must be the address of a PostgreSQL database, postgresql://user@host/name"
        )
    return url


class Settings(BaseSettings):
    """The backend's configuration; every field is an environment variable of the same name."""

    model_config = SettingsConfigDict(env_ignore_empty=True, extra="ignore", frozen=True)

    database_url: Annotated[SecretStr, AfterValidator(_postgres)]
    backend_host: str = "127.0.0.1"
    backend_port: int = Field(default=8000, ge=0, le=65535)
    mcp_url: str = "http://127.0.0.1:8001/mcp"

    llm_provider: ProviderName | None = None
    llm_base_url: str | None = None
    llm_api_key: SecretStr | None = None
    llm_model: str | None = None
    llm_temperature: float = Field(default=0.7, ge=0, le=2)
    llm_max_tokens: int = Field(default=1000, ge=1)
    cerebras_api_key: SecretStr | None = None
    openai_api_key: SecretStr | None = None
    anthropic_api_key: SecretStr | None = None

    auth_mode: Literal["none", "jwt"] = "none"
    auth_none_beyond_loopback: bool = False

    limit_message_chars: int = Field(default=8_000, ge=1)
    limit_request_bytes: int = Field(default=1_048_576, ge=1)

    heartbeat_seconds: float = Field(default=2.0, gt=0)
    lease_seconds: float = Field(default=15.0, gt=0)
    mcp_resend_seconds: float = Field(default=12.0, gt=0)
    tool_wait_seconds: float = Field(default=10.0, gt=0)

    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"


class SettingsInvalid(Exception):
    """One sentence for each setting that is missing or wrong, naming its environment variable."""


def read_settings() -> Settings:
    """The settings in the environment; raises `SettingsInvalid` when they cannot work."""
    try:
        settings = Settings()  # pyright: ignore[reportCallIssue] - the environment gives what is required
    except ValidationError as error:
        raise SettingsInvalid("\n".join(_sentence(problem) for problem in error.errors())) from None
    if settings.auth_mode == "jwt":
        raise SettingsInvalid("AUTH_MODE=jwt is not built yet: set AUTH_MODE=none.")
    if not settings.auth_none_beyond_loopback and settings.backend_host not in ("127.0.0.1", "::1", "localhost"):
        raise SettingsInvalid(
            "AUTH_MODE=none checks nobody, so BACKEND_HOST must be a loopback address: set BACKEND_HOST=127.0.0.1, "
            "or AUTH_NONE_BEYOND_LOOPBACK=true where only this machine can reach the port."
        )
    return settings


def _sentence(problem: Any) -> str:
    name = str(problem["loc"][0]).upper()
    if problem["type"] == "missing":
        return f"{name} is not set."
    return f"{name}: {problem['msg'][0].lower()}{problem['msg'][1:]}."
