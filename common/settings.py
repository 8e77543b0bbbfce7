"""The settings that several services share: sign-in, database, limits and logs."""

import re
from abc import abstractmethod
from datetime import timedelta
from ipaddress import ip_address
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from pydantic import AfterValidator, AliasChoices, AnyHttpUrl, Field, SecretStr, ValidationError, model_validator
from pydantic_core import PydanticCustomError
from pydantic_settings import BaseSettings

from common import ISSUER
from common.clock import Clock, find_zone, utc_now
from common.environment import CONFIG, require
from common.server.limits import THIS_MACHINE, ClientLimits, EdgeSettings, Proxies
from common.telemetry import logs

if TYPE_CHECKING:  # imported where they are created: reading the settings is what every command waits for
    from common.database import Database
    from common.tokens import Keys

_CENTURY_SECONDS = 100 * 365 * 86_400
# Certainly an address, as of most databases; libpq parses the others.
_PLAIN_ADDRESS = re.compile(
    r"postgres(?:ql)?://(?:[\w.~-]+(?::[\w.~-]*)?@)?[\w.-]*(?::\d{1,5})?/[\w.~-]*(?:\?host=[\w./~-]+)?", re.ASCII
)
_MIN_SECRET_BYTES = 32  # for HS256 (RFC 7518, section 3.2)
WRONG_ISSUER = f"AUTH_ISSUER must be the iss of your identity provider's tokens, and not {ISSUER}."


def _is_postgres(url: SecretStr) -> bool:
    address = url.get_secret_value()
    if _PLAIN_ADDRESS.fullmatch(address):
        return True
    # Not at the top: the driver takes a quarter of the time that it takes to check all settings.
    from psycopg import ProgrammingError
    from psycopg.conninfo import conninfo_to_dict

    try:
        ports = str(conninfo_to_dict(address).get("port", ""))  # libpq checks it only when it connects
    except ProgrammingError:  # its text would quote the password
        return False
    return address.startswith(("postgres://", "postgresql://")) and (not ports or ports.replace(",", "").isdecimal())


def is_http(url: str) -> bool:
    try:
        return bool(AnyHttpUrl(url).host) and url.isprintable()
    except ValidationError:
        return False


HttpUrl = Annotated[str, require(is_http, "must be an address, http://… or https://…")]
DatabaseUrl = Annotated[
    SecretStr, require(_is_postgres, "must be the address of a PostgreSQL database, postgresql://…")
]
Secret = Annotated[
    SecretStr,
    require(
        lambda secret: len(secret.get_secret_value().encode()) >= _MIN_SECRET_BYTES,
        "must have at least 32 bytes: make one with openssl rand -hex 32",
    ),
]
TimeZone = Annotated[str, require(find_zone, "must be the name of a time zone, such as Europe/Berlin")]
_KeyUrl = Annotated[str, require(is_http, "must be the address of your identity provider's public keys, https://…")]


def _check_page_url(url: str) -> str:
    """Checks that an address can be a page's, and removes the slash at its end."""
    if not is_http(url) or "?" in url or "#" in url:
        raise PydanticCustomError("setting", "must be the address people reach the page by, https://…")
    return url.rstrip("/")


def limit_per_user(default: int, *, least: int = 1) -> Any:
    """Returns a limit (`int | None`) whose default is `default` with sign-in, and no limit without."""
    return Field(
        default_factory=lambda fields: None if fields.get("auth_mode", "none") == "none" else default, ge=least
    )


class OwnerSettings(BaseSettings):
    """The login of the tables' owner, for commands on stored data."""

    model_config = CONFIG

    migration_database_url: DatabaseUrl = Field(validation_alias=AliasChoices("MIGRATION_DATABASE_URL", "DATABASE_URL"))


class SignInSettings(BaseSettings):
    """Whether people sign in. Every mode is closed to strangers unless it is `none`."""

    model_config = CONFIG

    auth_mode: Literal["none", "password", "oidc", "proxy", "jwt"] = "none"
    """AUTH_MODE=none is for one user on this machine. There is no sign-in, so the services accept only loopback
    addresses, unless AUTH_NONE_BEYOND_LOOPBACK=true. Set that only if no other machine can reach the ports.

    AUTH_MODE=password is for a household or a team: users sign in with a name and a password. ./todo user makes their
    accounts.

    AUTH_MODE=oidc is for users of an identity provider (OpenID Connect), who sign in there: docs/sign-in.md.

    AUTH_MODE=proxy is for a reverse proxy that signs users in, and names them in a header: docs/sign-in.md.

    AUTH_MODE=jwt is for programs and pages that have tokens of an identity provider. Each request needs such a token,
    which is checked with the settings below.
    """

    @property
    def signs_in(self) -> bool:
        return self.auth_mode != "none"

    @property
    def has_accounts(self) -> bool:
        """Whether users have accounts here, so that the backend is the authorization server of MCP clients."""
        return self.auth_mode in ("password", "oidc", "proxy")


class PageSettings(BaseSettings):
    """Where users reach the page."""

    model_config = CONFIG

    backend_port: int = Field(default=8000, ge=0, le=65535)
    backend_url: Annotated[str, AfterValidator(_check_page_url)] | None = None
    """The public address of the page, such as https://todo.example. Calendar links begin with it, and MCP clients sign
    in there: set it to the same value for the backend and the MCP server. Default: the address at which the page was
    opened; for ./todo calendar and MCP clients, http://localhost and the port. Below a path of a host, such as
    https://host.example/todo, the proxy may leave the path in requests or remove it.
    """

    @property
    def address(self) -> str:
        return self.backend_url or f"http://localhost:{self.backend_port}"


class TokenSettings(BaseSettings):
    """The settings that are needed to make a token for the MCP server."""

    model_config = CONFIG

    mcp_url: str = "http://127.0.0.1:8001/mcp"
    """The public address of the MCP server, and the audience of its tokens. Set it to the same value for the backend
    and the MCP server.
    """
    mcp_token_secret: Secret | None = None
    """The backend signs its calls to the MCP server with this secret, also with AUTH_MODE=none if it is set; only
    signed calls count as the assistant's. ./todo up and Docker create it. Create others with `openssl rand -hex 32`.
    """


class ClockSettings(BaseSettings):
    model_config = CONFIG

    time_zone: TimeZone = Field(default_factory=lambda: "UTC")  # a factory, because ./todo up has another default
    """The time zone of users whose client does not send one, such as Europe/Berlin; the page always sends it. Default:
    UTC, or with ./todo up the zone of this machine.
    """
    test_clock_offset_seconds: float | None = Field(None, ge=-_CENTURY_SECONDS, le=_CENTURY_SECONDS)
    """For tests: the seconds by which the clock of tasks and notes is ahead of this machine's. A service that other
    machines can reach does not start with it.
    """

    def create_clock(self) -> Clock:
        if self.test_clock_offset_seconds is None:
            return utc_now
        offset = timedelta(seconds=self.test_clock_offset_seconds)
        return lambda: utc_now() + offset


class ProcessSettings(SignInSettings, EdgeSettings, ClientLimits):
    """The settings of every service; each field is an environment variable of the same name."""

    prefix: ClassVar[str]
    """The prefix of the variables that only this service has, such as BACKEND."""

    # A factory, so that .env.example, which users copy, names no proxy: AUTH_MODE=proxy must not believe this machine.
    trusted_proxies: Proxies = Field(default_factory=lambda: THIS_MACHINE)
    """Addresses or networks of your reverse proxies, separated by commas. Only these may say that a request came by
    https (X-Forwarded-Proto); then cookies are Secure and the server accepts requests of its own https pages. 127.0.0.1
    and ::1 each mean both. A container sees a proxy on the host at the address of the network's gateway, in
    172.16.0.0/12. Default: 127.0.0.1,::1; with AUTH_MODE=proxy there is none.
    """
    drain_seconds: float = Field(default=0.0, ge=0, le=3600)
    """How many seconds a service may take to shut down after SIGTERM. /ready returns 503 at once, so that a load
    balancer stops sending requests; the service ends when no answer is running, after at least 3 seconds. 0: it ends at
    once, and so do running answers.
    """
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"
    """DEBUG, INFO, WARNING or ERROR."""
    log_format: logs.Format = "auto"
    """The format of log lines: text, json, or auto (text on a terminal, JSON elsewhere)."""
    otel_exporter_otlp_endpoint: HttpUrl | None = None
    """The address that receives OpenTelemetry traces (OTLP over HTTP), such as http://127.0.0.1:4318. Other OTEL_*
    variables work too; with Docker, name them in a docker-compose.override.yml. Default: no traces.
    """

    @property
    def knows_client_addresses(self) -> bool:
        """Whether the operator has said which proxies name the addresses of clients; else all may have that of one."""
        return "trusted_proxies" in self.model_fields_set and "*" not in self.trusted_proxies

    def get_service_setting(self, name: str) -> Any:
        """Returns the service's `host`, `port` or `workers`, whose names begin with its prefix."""
        return getattr(self, f"{self.prefix}_{name}".lower())

    @model_validator(mode="after")
    def _check_combination(self) -> Self:
        if problem := self.find_problem():
            raise PydanticCustomError("setting", "{problem}", {"problem": problem})
        return self

    @abstractmethod
    def find_problem(self) -> str | None:
        """Returns why these settings cannot work together, as a sentence."""


class ServiceSettings(TokenSettings, ProcessSettings, ClockSettings):
    """The settings of the services that use the database."""

    database_url: DatabaseUrl
    """The database of the backend and the MCP server, postgres://… or postgresql://…. The services log in at
    DATABASE_URL, as todo_service, which can read and write the rows of one user at a time. The commands migrate, usage,
    calendar, export and forget log in at MIGRATION_DATABASE_URL, as the owner of the tables (default: DATABASE_URL).
    docs/data.md says how to create both logins.
    """
    listen_database_url: DatabaseUrl | None = None
    """Only for a connection pooler such as PgBouncer with pool_mode=transaction. LISTEN_DATABASE_URL is the address of
    PostgreSQL itself: each backend process listens there for messages of the others. Set DATABASE_PREPARED=off if the
    pooler does not support prepared statements, such as PgBouncer before 1.21. Example: docs/deployment.md.
    """
    database_prepared: Literal["on", "off"] = "on"
    limit_database_share: int | None = limit_per_user(3)
    """How many of the ten connections of a process to the database are used for one user at the same time; the user's
    other transactions wait, and those of other users do not. Default with sign-in: 3; without: no limit.
    """
    limit_requests_at_once: int | None = limit_per_user(6)
    """How many requests of one user each process of the backend and of the MCP server works on at the same time,
    without open event streams; the MCP server counts those of the backend apart. A few more wait for some seconds.
    Default with sign-in: 6; without: no limit.
    """
    auth_none_beyond_loopback: bool = False
    auth_jwt_secret: Secret | None = None
    """For AUTH_MODE=jwt: tokens are checked with a shared secret (AUTH_JWT_SECRET) or the provider's public keys
    (AUTH_JWKS_URL). AUTH_ISSUER is the iss of the tokens. Their audience is AUTH_AUDIENCE for the backend and MCP_URL
    for the MCP server.
    """
    auth_jwks_url: _KeyUrl | None = None
    auth_jwks_max_age_seconds: int = Field(default=14_400, ge=1, le=86_400)
    """How many seconds the public keys stay valid while AUTH_JWKS_URL cannot be reached; at most a day, 86400."""
    auth_issuer: str | None = None
    limit_open_responses: int | None = limit_per_user(32)
    """How many responses of one user may be open at the same time in each process of the backend, and of the MCP
    server: those that its client has not read to the end, such as event streams and downloads. Default with
    sign-in: 32; without: no limit.
    """

    def create_database(self, **options: Any) -> "Database":
        from common.database import Database

        prepared, share = self.database_prepared == "on", self.limit_database_share
        return Database(self.database_url.get_secret_value(), prepared=prepared, user_share=share, **options)

    @property
    def serves_this_machine_only(self) -> bool:
        """Whether only requests of this machine need no sign-in."""
        return not self.signs_in and not self.auth_none_beyond_loopback

    @property
    def process_database_url(self) -> str:
        """Returns the address of PostgreSQL itself, without a pooler, for LISTEN and locks of sessions."""
        return (self.listen_database_url or self.database_url).get_secret_value()

    def create_provider_keys(self) -> "Keys | None":
        from common.tokens import KeySet, SharedSecret

        if self.auth_mode != "jwt":
            return None
        if self.auth_jwt_secret:
            return SharedSecret(self.auth_jwt_secret.get_secret_value())
        if self.auth_jwks_url:
            return KeySet(self.auth_jwks_url, max_age_seconds=self.auth_jwks_max_age_seconds)
        return None

    def find_problem(self) -> str | None:
        if self.test_clock_offset_seconds is not None and not is_loopback(self.get_service_setting("host")):
            advice = f"Unset it, or set {self.prefix}_HOST=127.0.0.1."
            return f"TEST_CLOCK_OFFSET_SECONDS is only for tests on this machine. {advice}"
        if self.signs_in:
            return self.find_token_problem()
        if self.auth_none_beyond_loopback or is_loopback(self.get_service_setting("host")):
            return None
        name, host = f"{self.prefix}_HOST", self.get_service_setting("host")
        return (
            f"With AUTH_MODE=none there is no sign-in, so other machines must not reach {name}={host}: set "
            f"AUTH_MODE=password, oidc, proxy or jwt, or {name}=127.0.0.1, or AUTH_NONE_BEYOND_LOOPBACK=true if only "
            "this machine can reach the port."
        )

    @abstractmethod
    def find_token_problem(self) -> str | None:
        """Returns why the tokens of users cannot be checked, as a sentence."""


def is_address(host: str) -> bool:
    try:
        return bool(ip_address(host))
    except ValueError:
        return False


def is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
