"""Whose request it is: a bearer token, and what is answered without one that holds."""

import logging
from collections.abc import Callable

import jwt
from fastmcp.server.auth import AccessToken, TokenVerifier
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.routes import build_resource_metadata_url
from pydantic import AnyHttpUrl
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from common.tokens import Tokens
from common.tool_server.refusals import shown

log = logging.getLogger(__name__)

_REFUSAL = {"error": "invalid_token", "error_description": "This MCP server needs a valid bearer token."}


class Verifier(TokenVerifier):
    """FastMCP's view of the tokens that a server accepts."""

    def __init__(self, tokens: Tokens) -> None:
        super().__init__()
        self._tokens = tokens

    async def verify_token(self, token: str) -> AccessToken | None:
        try:
            claims = await self._tokens.claims(token)
        except jwt.PyJWTError as error:
            log.info("rejected a token: %s", shown(str(error) or type(error).__name__, longest=120))
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
    """Answers all on guarded paths without a valid token with one 401; FastMCP's own differ by method and reason."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        guards: Callable[[str], bool],
        metadata_of: str | None = None,
        optional: bool = False,
    ) -> None:
        """With `optional`, what carries no token at all passes."""
        self._app = app
        self._guards = guards
        self._optional = optional
        self._metadata = (
            f'resource_metadata="{build_resource_metadata_url(AnyHttpUrl(metadata_of))}"' if metadata_of else ""
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        guarded = scope["type"] == "http" and self._guards(scope["path"])
        if not guarded or isinstance(scope.get("user"), AuthenticatedUser):
            return await self._app(scope, receive, send)
        sent = any(name == b"authorization" for name, _ in scope["headers"])
        if self._optional and not sent:
            return await self._app(scope, receive, send)
        # RFC 6750, section 3.1: who has sent no token is told of no error.
        error = 'error="invalid_token"' if sent else ""
        challenge = f"Bearer {', '.join(filter(None, (error, self._metadata)))}".strip()
        refusal = JSONResponse(_REFUSAL, status_code=401, headers={"www-authenticate": challenge})
        return await refusal(scope, receive, send)
