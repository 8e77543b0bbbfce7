"""Bearer tokens, and the response to a request without a valid one."""

import logging
from collections.abc import Callable

import jwt
from fastmcp.server.auth import AccessToken, TokenVerifier
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.routes import build_resource_metadata_url
from pydantic import AnyHttpUrl
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from common.server.connection_owner import BACKEND, set_owner
from common.tokens import AccessTokenVerifier, is_from_backend
from common.tool_server.errors import to_printable

log = logging.getLogger(__name__)

_RESPONSE = {"error": "invalid_token", "error_description": "This MCP server needs a valid bearer token."}


class BearerTokenVerifier(TokenVerifier):
    def __init__(self, tokens: AccessTokenVerifier) -> None:
        super().__init__()
        self._tokens = tokens

    async def verify_token(self, token: str) -> AccessToken | None:
        try:
            claims = await self._tokens.verify(token)
        except jwt.PyJWTError as error:
            log.info("rejected a token: %s", to_printable(str(error) or type(error).__name__, max_length=120))
            return None
        return AccessToken(
            token=token,
            client_id=claims["iss"],
            scopes=[],
            expires_at=int(claims["exp"]),
            subject=claims["sub"],
            claims=claims,
        )


class RequireToken:
    """Answers requests on guarded paths without a valid token with 401; FastMCP's own responses differ by method.

    With `optional`, requests without any token pass.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        guards: Callable[[str], bool],
        resource_url: str | None = None,
        optional: bool = False,
    ) -> None:
        self._app = app
        self._guards = guards
        self._optional = optional
        self._metadata = (
            f'resource_metadata="{build_resource_metadata_url(AnyHttpUrl(resource_url))}"' if resource_url else ""
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        guarded = scope["type"] == "http" and self._guards(scope["path"])
        user = scope.get("user")
        if isinstance(user, AuthenticatedUser):
            token = user.access_token
            set_owner(scope, BACKEND if is_from_backend(token.claims or {}) else token.subject or token.client_id)
        if not guarded or isinstance(user, AuthenticatedUser):
            return await self._app(scope, receive, send)
        has_token = any(name == b"authorization" for name, _ in scope["headers"])
        if self._optional and not has_token:
            return await self._app(scope, receive, send)
        error = 'error="invalid_token"' if has_token else ""  # RFC 6750, section 3.1
        challenge = f"Bearer {', '.join(filter(None, (error, self._metadata)))}".strip()
        response = JSONResponse(_RESPONSE, status_code=401, headers={"www-authenticate": challenge})
        return await response(scope, receive, send)
