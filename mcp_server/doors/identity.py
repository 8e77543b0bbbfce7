"""Whose request it is: the tokens that are accepted, and what is answered without one."""

import logging
import time

import jwt
from fastmcp.server.auth import AccessToken, AuthProvider, RemoteAuthProvider, TokenVerifier
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.routes import build_resource_metadata_url
from pydantic import AnyHttpUrl
from starlette.middleware import Middleware
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from mcp_server.doors.reading import PATHS
from mcp_server.errors import shown
from mcp_server.settings import Settings
from service.tokens import ISSUER, Keys, SharedSecret, Tokens, make_token

log = logging.getLogger(__name__)

_REFUSAL = {"error": "invalid_token", "error_description": "A valid bearer token for this MCP server is needed."}


class Verifier(TokenVerifier):
    """FastMCP's view of the tokens this server accepts."""

    def __init__(self, tokens: Tokens) -> None:
        super().__init__()
        self._tokens = tokens

    async def verify_token(self, token: str) -> AccessToken | None:
        try:
            claims = await self._tokens.claims(token)
        except jwt.PyJWTError as error:
            log.info("refused a token: %s", shown(str(error) or type(error).__name__, longest=120))
            return None
        return AccessToken(
            token=token,
            client_id=claims["iss"],
            scopes=[],
            expires_at=int(claims["exp"]),
            subject=claims["sub"],
            claims=claims,
        )


def auth_provider(settings: Settings) -> AuthProvider | None:
    """What checks the callers; None where calls without a token are served."""
    if settings.mcp_token_secret is None or settings.auth_mode == "none":
        return None
    issuers: dict[str, Keys] = {ISSUER: SharedSecret(settings.mcp_token_secret.get_secret_value())}
    if settings.auth_issuer and (keys := settings.provider_keys()):
        issuers[settings.auth_issuer] = keys
    verifier = Verifier(Tokens(issuers, audience=settings.mcp_url))
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
    if settings.auth_mode == "jwt":
        return [Middleware(RequireToken, metadata_of=settings.mcp_url if settings.authorization_server else None)]
    if settings.mcp_token_secret is None:
        return []
    ours = SharedSecret(settings.mcp_token_secret.get_secret_value())
    verifier = Verifier(Tokens({ISSUER: ours}, audience=settings.mcp_url))
    return [*verifier.get_middleware(), Middleware(RequireToken, metadata_of=None, optional=True)]


def own_token(settings: Settings, *, subject: str) -> str | None:
    """A token for this server's own first requests; None where none is needed."""
    if settings.mcp_token_secret is None or settings.auth_mode == "none":
        return None
    secret = settings.mcp_token_secret.get_secret_value()
    return make_token(secret, subject, audience=settings.mcp_url, expires=int(time.time()) + 60)


_GUARDED = ("/mcp", *PATHS)


class RequireToken:
    """Answers all on these paths without a valid token with one 401; FastMCP's own differ by method and reason."""

    def __init__(self, app: ASGIApp, *, metadata_of: str | None, optional: bool = False) -> None:
        """With `optional`, what carries no token at all passes."""
        self._app = app
        self._optional = optional
        self._metadata = (
            f'resource_metadata="{build_resource_metadata_url(AnyHttpUrl(metadata_of))}"' if metadata_of else ""
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] not in _GUARDED or isinstance(scope.get("user"), AuthenticatedUser):
            return await self._app(scope, receive, send)
        sent = any(name == b"authorization" for name, _ in scope["headers"])
        if self._optional and not sent:
            return await self._app(scope, receive, send)
        # RFC 6750, section 3.1: who has sent no token is told of no error.
        error = 'error="invalid_token"' if sent else ""
        challenge = f"Bearer {', '.join(filter(None, (error, self._metadata)))}".strip()
        refusal = JSONResponse(_REFUSAL, status_code=401, headers={"www-authenticate": challenge})
        return await refusal(scope, receive, send)
