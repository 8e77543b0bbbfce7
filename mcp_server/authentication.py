"""Whose request it is: the tokens that are accepted, and which requests need one."""

from fastmcp.server.auth import AuthProvider, RemoteAuthProvider
from starlette.middleware import Middleware

from common.tokens import ISSUER, AccessTokenVerifier, Keys, SharedSecret
from common.tool_server.identity import BearerTokenVerifier, RequireToken
from mcp_server.read_routes import PATHS
from mcp_server.settings import Settings

_GUARDED = frozenset({"/mcp", *PATHS})


def auth_provider(settings: Settings) -> AuthProvider | None:
    """What checks the callers; None where calls without a token are served."""
    if settings.mcp_token_secret is None or settings.auth_mode == "none":
        return None
    issuers: dict[str, Keys] = {ISSUER: SharedSecret(settings.mcp_token_secret.get_secret_value())}
    if settings.auth_issuer and (keys := settings.create_provider_keys()):
        issuers[settings.auth_issuer] = keys
    verifier = BearerTokenVerifier(AccessTokenVerifier(issuers, audience=settings.mcp_url))
    if not settings.authorization_server:
        return verifier
    return RemoteAuthProvider(
        verifier,
        # Taken as text, it keeps the spelling that the tokens have.
        authorization_servers=[settings.authorization_server],  # pyright: ignore[reportArgumentType]
        base_url=settings.mcp_url.removesuffix("/mcp"),
        resource_name="Todo",
    )


def token_checks(settings: Settings) -> list[Middleware]:
    """What every request passes. With AUTH_MODE=none only the backend's tokens hold, and none is needed."""
    guards = _GUARDED.__contains__
    if settings.auth_mode == "jwt":
        metadata_of = settings.mcp_url if settings.authorization_server else None
        return [Middleware(RequireToken, guards=guards, metadata_of=metadata_of)]
    if settings.mcp_token_secret is None:
        return []
    ours = SharedSecret(settings.mcp_token_secret.get_secret_value())
    verifier = BearerTokenVerifier(AccessTokenVerifier({ISSUER: ours}, audience=settings.mcp_url))
    return [*verifier.get_middleware(), Middleware(RequireToken, guards=guards, optional=True)]
