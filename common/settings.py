"""What services are told alike: whom they check, what they allow and what they write."""

from abc import abstractmethod
from ipaddress import ip_address
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeVar

from pydantic import AfterValidator, AliasChoices, AnyHttpUrl, Field, SecretStr, ValidationError
from pydantic_core import PydanticCustomError
from pydantic_settings import BaseSettings

from common.clock import NowSettings
from common.environment import CONFIG, CommaSeparated, SettingsInvalid, read
from common.telemetry import logs
from common.tokens import ISSUER, Keys, KeySet, SharedSecret, is_weak
from common.workers import THIS_MACHINE, ClientLimits, Proxies

if TYPE_CHECKING:
    from common.database import Database

_Read = TypeVar("_Read", bound="ProcessSettings")
WRONG_ISSUER = f"AUTH_ISSUER must be the iss of your identity provider's tokens, and not {ISSUER}."


def _postgres(url: SecretStr) -> SecretStr:
    if not _is_postgres(url.get_secret_value()):
        raise PydanticCustomError("setting", "must be the address of a PostgreSQL database, postgresql://…")
    return url


def _is_postgres(address: str) -> bool:
    from psycopg import ProgrammingError  # here: who only makes a token does not wait for the driver
    from psycopg.conninfo import conninfo_to_dict

    try:
        ports = str(conninfo_to_dict(address).get("port", ""))  # libpq reads it only when it connects
    except ProgrammingError:  # its text quotes the address, and so a password
        return False
    return address.startswith(("postgres://", "postgresql://")) and (not ports or ports.replace(",", "").isdecimal())


def _strong(secret: SecretStr) -> SecretStr:
    if is_weak(secret.get_secret_value()):
        raise PydanticCustomError("setting", "is too easy to guess: make one with openssl rand -hex 32")
    return secret


def _keys(url: str) -> str:
    if not is_http(url):
        raise PydanticCustomError("setting", "must be the address of your identity provider's public keys, https://…")
    return url


def is_http(url: str) -> bool:
    try:
        return bool(AnyHttpUrl(url).host)
    except ValidationError:
        return False


DatabaseUrl = Annotated[SecretStr, AfterValidator(_postgres)]
Secret = Annotated[SecretStr, AfterValidator(_strong)]


def per_person(default: int, *, least: int = 1) -> Any:
    """A limit that without a setting holds for people who sign in only; `int | None`, None for no limit."""
    return Field(default_factory=lambda given: default if given.get("auth_mode") == "jwt" else None, ge=least)


class OwnerSettings(BaseSettings):
    """The login of the tables' owner, for commands that work on what is stored."""

    model_config = CONFIG

    migration_database_url: DatabaseUrl = Field(validation_alias=AliasChoices("MIGRATION_DATABASE_URL", "DATABASE_URL"))


class TokenSettings(BaseSettings):
    """What it takes to make a token for the MCP server."""

    model_config = CONFIG

    mcp_url: str = "http://127.0.0.1:8001/mcp"
    mcp_token_secret: Secret | None = None


class ProcessSettings(ClientLimits):
    """What every service is told; every field is an environment variable of the same name."""

    prefix: ClassVar[str]
    """How the names of the service's own settings begin."""

    allowed_hosts: CommaSeparated = ()
    allowed_origins: CommaSeparated = ()
    trusted_proxies: Proxies = THIS_MACHINE
    drain_seconds: float = Field(default=0.0, ge=0, le=3600)
    auth_mode: Literal["none", "jwt"] = "none"
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"
    log_format: logs.Format = "auto"
    otel_exporter_otlp_endpoint: str | None = None

    def own(self, name: str) -> Any:
        """One of the service's own settings: `host`, `port` or `workers`."""
        return getattr(self, f"{self.prefix}_{name}".lower())

    @abstractmethod
    def problem(self) -> str | None:
        """Why these settings cannot work together, in one sentence."""


class ServiceSettings(TokenSettings, ProcessSettings, NowSettings):
    """What the services that stand on the database are told alike."""

    database_url: DatabaseUrl
    listen_database_url: DatabaseUrl | None = None
    database_prepared: Literal["on", "off"] = "on"
    auth_none_beyond_loopback: bool = False
    auth_jwt_secret: Secret | None = None
    auth_jwks_url: Annotated[str, AfterValidator(_keys)] | None = None
    auth_jwks_max_age_seconds: int = Field(default=14_400, ge=1, le=86_400)
    auth_issuer: str | None = None

    def create_database(self, **options: Any) -> "Database":
        from common.database import Database

        return Database(self.database_url.get_secret_value(), prepared=self.database_prepared == "on", **options)

    @property
    def process_database_url(self) -> str:
        """Where `ProcessConnection` finds PostgreSQL itself."""
        return (self.listen_database_url or self.database_url).get_secret_value()

    def provider_keys(self) -> Keys | None:
        """What the identity provider's tokens are checked with, if there is one."""
        if self.auth_jwt_secret:
            return SharedSecret(self.auth_jwt_secret.get_secret_value())
        if self.auth_jwks_url:
            return KeySet(self.auth_jwks_url, max_age_seconds=self.auth_jwks_max_age_seconds)
        return None

    def problem(self) -> str | None:
        if self.test_now is not None and not _is_loopback(self.own("host")):
            return f"TEST_NOW is only for tests on this machine. Unset it, or set {self.prefix}_HOST=127.0.0.1."
        if self.auth_mode == "jwt":
            return self.problem_with_tokens()
        if self.auth_none_beyond_loopback or _is_loopback(self.own("host")):
            return None
        name = f"{self.prefix}_HOST"
        return (
            f"With AUTH_MODE=none there is no sign-in, so {name} must be a loopback address. Set {name}=127.0.0.1, "
            "or AUTH_NONE_BEYOND_LOOPBACK=true if only this machine can reach the port."
        )

    @abstractmethod
    def problem_with_tokens(self) -> str | None:
        """Why people's tokens could not be checked."""


def read_service(kind: type[_Read]) -> _Read:
    """The settings in the environment; raises `SettingsInvalid` for what cannot work."""
    settings = read(kind)
    if problem := settings.problem():
        raise SettingsInvalid(problem)
    return settings


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
