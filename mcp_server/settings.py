from ipaddress import ip_address
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr, ValidationError, model_validator
from pydantic_core import PydanticCustomError
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict
from sqlalchemy import make_url
from sqlalchemy.exc import ArgumentError


def _split(value: Any) -> Any:
    return tuple(part.strip() for part in value.split(",") if part.strip()) if isinstance(value, str) else value


def _postgres(url: SecretStr) -> SecretStr:
    """Checked here, because the library that reads it quotes it, password and all, in its errors."""
    try:
        known = make_url(url.get_secret_value()).drivername in ("postgres", "postgresql")
    except (ArgumentError, ValueError):
        known = False
    if not known:
        raise PydanticCustomError("setting", "must be the address of a PostgreSQL database, postgresql://…")
    return url


CommaSeparated = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_split)]


class Settings(BaseSettings):
    model_config = SettingsConfigDict(frozen=True, env_ignore_empty=True, extra="ignore")

    database_url: Annotated[SecretStr, AfterValidator(_postgres)]
    mcp_host: str = "127.0.0.1"
    mcp_port: int = Field(default=8001, ge=0, le=65535)
    allowed_hosts: CommaSeparated = ()
    allowed_origins: CommaSeparated = ()
    auth_mode: Literal["none", "jwt"] = "none"
    auth_none_beyond_loopback: bool = False
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"

    @model_validator(mode="after")
    def _someone_is_checked(self) -> Self:
        if self.auth_mode == "jwt":
            raise PydanticCustomError("setting", "AUTH_MODE=jwt is not built yet: set AUTH_MODE=none.")
        if not self.auth_none_beyond_loopback and not _is_loopback(self.mcp_host):
            raise PydanticCustomError(
                "setting",
                "AUTH_MODE=none checks nobody, so MCP_HOST must be a loopback address: set MCP_HOST=127.0.0.1, "
                "or AUTH_NONE_BEYOND_LOOPBACK=true where only this machine can reach the port.",
            )
        return self


class SettingsInvalid(Exception):
    """Its text is one sentence for each setting that is wrong."""


def read_settings() -> Settings:
    """The settings in the environment; SettingsInvalid if they cannot work."""
    try:
        return Settings()  # pyright: ignore[reportCallIssue] - the environment gives what is required
    except ValidationError as error:
        raise SettingsInvalid("\n".join(_sentence(problem) for problem in error.errors())) from None


_RULES = {
    "MCP_PORT": "a port number from 0 to 65535",
    "AUTH_MODE": "none or jwt",
    "AUTH_NONE_BEYOND_LOOPBACK": "true or false",
    "LOG_LEVEL": "DEBUG, INFO, WARNING or ERROR",
}


def _sentence(problem: Any) -> str:
    if not problem["loc"]:
        return problem["msg"]
    name = str(problem["loc"][0]).upper()
    if problem["type"] == "missing":
        return f"{name} is not set: give the address of the database, for example postgresql://user@host/todo."
    return f"{name} must be {_RULES[name]}." if name in _RULES else f"{name} {problem['msg']}."


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
