"""Which tokens are accepted, and which requests need one."""

from fastmcp.server.auth import AuthProvider, RemoteAuthProvider
from starlette.middleware import Middleware

from common.tokens import ISSUER, AccessTokenVerifier, Keys, SharedSecret
from common.tool_server.identity import BearerTokenVerifier, RequireToken
from mcp_server.read_routes import PATHS
from mcp_server.settings import McpSettings

_GUARDED = frozenset({"/mcp", *PATHS})


def create_auth_provider(settings: McpSettings) -> AuthProvider | None:
    if settings.mcp_token_secret is None or not settings.signs_in:
        return None
    issuers: dict[str, Keys] = {ISSUER: SharedSecret(settings.mcp_token_secret.get_secret_value())}
    if settings.auth_issuer and (keys := settings.create_provider_keys()):
        issuers[settings.auth_issuer] = keys
    verifier = BearerTokenVerifier(AccessTokenVerifier(issuers, audience=settings.mcp_url))
    if not settings.authorization_server:
        return verifier
    return RemoteAuthProvider(
        verifier,
        # A text and not a URL, so that it is spelled as in the tokens.
        authorization_servers=[settings.authorization_server],  # pyright: ignore[reportArgumentType]
        base_url=settings.mcp_url.removesuffix("/mcp"),
        resource_name="Todo",
    )


def create_token_middleware(settings: McpSettings) -> list[Middleware]:
    guards = _GUARDED.__contains__
    if settings.signs_in:
        resource_url = settings.mcp_url if settings.authorization_server else None
        return [Middleware(RequireToken, guards=guards, resource_url=resource_url)]
    if settings.mcp_token_secret is None:
        return []
    secret = SharedSecret(settings.mcp_token_secret.get_secret_value())
    verifier = BearerTokenVerifier(AccessTokenVerifier({ISSUER: secret}, audience=settings.mcp_url))
    return [*verifier.get_middleware(), Middleware(RequireToken, guards=guards, optional=True)]
