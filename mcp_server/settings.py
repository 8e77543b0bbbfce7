import sys
from ipaddress import ip_address
from typing import Annotated, Any, Literal, LiteralString, Self, TypeVar

from pydantic import AfterValidator, AnyHttpUrl, BeforeValidator, Field, SecretStr, ValidationError, model_validator
from pydantic_core import PydanticCustomError
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from database import can_read
from telemetry import logs
from tokens import ISSUER, is_weak


def _split(value: Any) -> Any:
    return tuple(part.strip() for part in value.split(",") if part.strip()) if isinstance(value, str) else value


def _postgres(url: SecretStr) -> SecretStr:
    if not can_read(url.get_secret_value()):
        raise PydanticCustomError("setting", "must be the address of a PostgreSQL database, postgresql://…")
    return url


def _strong(secret: SecretStr) -> SecretStr:
    if is_weak(secret.get_secret_value()):
        raise PydanticCustomError("setting", "is too easy to guess: make one with openssl rand -hex 32")
    return secret


def _http(url: str) -> str:
    if not _is_http(url):
        raise PydanticCustomError("setting", "must be the address of your identity provider's keys, https://…")
    return url


def _as_clients_spell_it(url: str) -> str:
    """Tokens and metadata hold the same text: one that a library would spell differently could match neither."""
    if not _is_http(url) or str(AnyHttpUrl(url)) != url or not url.endswith("/mcp") or "?" in url:
        raise PydanticCustomError("setting", "must be this server's address as clients spell it, https://host/mcp")
    return url


_Read = TypeVar("_Read", bound=BaseSettings)
CommaSeparated = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_split)]
Secret = Annotated[SecretStr, AfterValidator(_strong)]


class CommandSettings(BaseSettings):
    """What the commands need that work on the stored data."""

    model_config = SettingsConfigDict(frozen=True, env_ignore_empty=True, extra="ignore")

    database_url: Annotated[SecretStr, AfterValidator(_postgres)]


class Settings(CommandSettings):
    mcp_host: str = "127.0.0.1"
    mcp_port: int = Field(default=8001, ge=0, le=65535)
    mcp_workers: int = Field(default=1, ge=1, le=64)
    mcp_url: Annotated[str, AfterValidator(_as_clients_spell_it)] = "http://127.0.0.1:8001/mcp"
    allowed_hosts: CommaSeparated = ()
    allowed_origins: CommaSeparated = ()
    auth_mode: Literal["none", "jwt"] = "none"
    auth_none_beyond_loopback: bool = False
    mcp_token_secret: Secret | None = None
    auth_jwt_secret: Secret | None = None
    auth_jwks_url: Annotated[str, AfterValidator(_http)] | None = None
    auth_issuer: str | None = None
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"
    log_format: logs.Format = "auto"
    otel_exporter_otlp_endpoint: str | None = None

    @property
    def authorization_server(self) -> str | None:
        """Where clients can get a token: the issuer of the identity provider's tokens, if it is an address."""
        provider = self.auth_jwt_secret or self.auth_jwks_url
        return self.auth_issuer if provider and self.auth_issuer and _is_http(self.auth_issuer) else None

    @model_validator(mode="after")
    def _someone_is_checked(self) -> Self:
        if self.auth_mode == "jwt":
            if sentence := self._unusable():
                raise PydanticCustomError("setting", sentence)
        elif not self.auth_none_beyond_loopback and not _is_loopback(self.mcp_host):
            raise PydanticCustomError(
                "setting",
                "AUTH_MODE=none checks nobody, so MCP_HOST must be a loopback address: set MCP_HOST=127.0.0.1, "
                "or AUTH_NONE_BEYOND_LOOPBACK=true where only this machine can reach the port.",
            )
        return self

    def _unusable(self) -> LiteralString | None:
        """Why tokens could not be checked."""
        if self.mcp_token_secret is None:
            return "AUTH_MODE=jwt needs MCP_TOKEN_SECRET, as the backend has it: make one with openssl rand -hex 32."
        if self.auth_jwt_secret and self.auth_jwks_url:
            return "AUTH_JWT_SECRET and AUTH_JWKS_URL are both set: keep the one your identity provider signs with."
        if self.auth_jwt_secret == self.mcp_token_secret:
            return "AUTH_JWT_SECRET and MCP_TOKEN_SECRET must differ: make each with openssl rand -hex 32."
        if (self.auth_jwt_secret or self.auth_jwks_url) and self.auth_issuer in (None, ISSUER):
            return "AUTH_ISSUER must be the iss of your identity provider's tokens, and other than todo-assistant."
        return None


class SettingsInvalid(Exception):
    """Its text is one sentence for each setting that is wrong."""


def read_command_settings() -> CommandSettings:
    """What a command needs of the environment; where that cannot work, the process ends with a sentence."""
    try:
        return _read(CommandSettings)
    except SettingsInvalid as error:
        sys.exit(str(error))


def read_settings() -> Settings:
    """The settings in the environment; SettingsInvalid if they cannot work."""
    return _read(Settings)


def _read(kind: type[_Read]) -> _Read:
    try:
        return kind()
    except ValidationError as error:
        raise SettingsInvalid("\n".join(_sentence(problem) for problem in error.errors())) from None


_RULES = {
    "MCP_PORT": "a port number from 0 to 65535",
    "MCP_WORKERS": "a number from 1 to 64",
    "AUTH_MODE": "none or jwt",
    "AUTH_NONE_BEYOND_LOOPBACK": "true or false",
    "LOG_LEVEL": "DEBUG, INFO, WARNING or ERROR",
    "LOG_FORMAT": "auto, text or json",
}


def _sentence(problem: Any) -> str:
    if not problem["loc"]:
        return problem["msg"]
    name = str(problem["loc"][0]).upper()
    if problem["type"] == "missing":
        return f"{name} is not set: give the address of the database, for example postgresql://user@host/todo."
    return f"{name} must be {_RULES[name]}." if name in _RULES else f"{name} {problem['msg']}."


def _is_http(url: str) -> bool:
    try:
        return bool(AnyHttpUrl(url).host)
    except ValidationError:
        return False


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
