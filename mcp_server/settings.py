from typing import Annotated, ClassVar

from pydantic import AnyHttpUrl, Field

from common import ISSUER
from common.environment import require
from common.settings import (
    WRONG_ISSUER,
    ClockSettings,
    PageSettings,
    ServiceSettings,
    SignInSettings,
    is_http,
    limit_per_user,
)


def _is_mcp_url(url: str) -> bool:
    """Whether libraries spell the address in the same way, because tokens and metadata contain the same text."""
    return is_http(url) and str(AnyHttpUrl(url)) == url and url.endswith("/mcp") and "?" not in url


_McpUrl = Annotated[str, require(_is_mcp_url, "must be this server's address as clients spell it, https://host/mcp")]
_MAX_TASKS = 10_000


class McpSettings(PageSettings, ServiceSettings):
    prefix: ClassVar[str] = "MCP"

    mcp_host: str = "127.0.0.1"
    mcp_port: int = Field(default=8001, ge=0, le=65535)
    mcp_workers: int = Field(default=1, ge=1, le=64)
    mcp_url: _McpUrl = "http://127.0.0.1:8001/mcp"
    limit_tool_calls_per_minute: int | None = limit_per_user(600)
    limit_tasks: int | None = limit_per_user(_MAX_TASKS)
    limit_changes_per_day: int | None = limit_per_user(5_000)
    keep_changes_days: int | None = limit_per_user(365, least=30)
    """How many days changes of tasks are stored, at least 30. Default with sign-in: 365; without: always."""

    @property
    def authorization_server(self) -> str | None:
        """Returns the address where clients get a token: the page's with accounts; with an identity provider, its
        issuer, if that is an address.
        """
        if self.has_accounts:
            return self.address
        provider = self.auth_mode == "jwt" and (self.auth_jwt_secret or self.auth_jwks_url)
        return self.auth_issuer if provider and self.auth_issuer and is_http(self.auth_issuer) else None

    def find_token_problem(self) -> str | None:
        if self.mcp_token_secret is None:
            advice = "as the backend has it: make one with openssl rand -hex 32."
            return f"AUTH_MODE={self.auth_mode} needs MCP_TOKEN_SECRET, {advice}"
        return self._find_provider_problem() if self.auth_mode == "jwt" else None

    def _find_provider_problem(self) -> str | None:
        if self.auth_jwt_secret and self.auth_jwks_url:
            return "AUTH_JWT_SECRET and AUTH_JWKS_URL are both set: keep the one your identity provider signs with."
        if self.auth_jwt_secret == self.mcp_token_secret:
            return "AUTH_JWT_SECRET and MCP_TOKEN_SECRET must differ: make each with openssl rand -hex 32."
        if (self.auth_jwt_secret or self.auth_jwks_url) and self.auth_issuer in (None, ISSUER):
            return WRONG_ISSUER
        return None


class ImportSettings(SignInSettings, ClockSettings):
    limit_tasks: int | None = limit_per_user(_MAX_TASKS)
