"""Bearer tokens, and the responses to requests without a valid one, or with one whose scopes do not suffice."""

import logging
from collections.abc import Callable

import jwt
from fastmcp.server.auth import AccessToken, TokenVerifier
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.routes import build_resource_metadata_url
from pydantic import AnyHttpUrl
from starlette.responses import JSONResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from common import ISSUER, scopes
from common.server.connection_owner import BACKEND, set_owner
from common.tokens import AccessTokenVerifier, OwnTokenRejected, is_from_backend, read_session_id
from common.tool_server.errors import to_printable

log = logging.getLogger(__name__)

_NEEDED = "This MCP server needs a valid bearer token."


class BearerTokenVerifier(TokenVerifier):
    """Accepts the tokens of `tokens`; with `sessions`, of those that are ours only calls and tokens with a session.

    FastMCP's `MultiAuth` is not used: it would try each token with one verifier after the other, where the issuer that
    a token names says which key is the only one that may have signed it.
    """

    def __init__(self, tokens: AccessTokenVerifier, *, sessions: bool = False) -> None:
        super().__init__()
        self._tokens = tokens
        self._sessions = sessions

    async def verify_token(self, token: str) -> AccessToken | None:
        try:
            return await self._verify(token)
        except jwt.PyJWTError as error:
            log.info("rejected a token: %s", to_printable(str(error) or type(error).__name__, max_length=120))
            return None

    async def explain(self, token: str) -> str:
        """Returns the sentence about a token that is not accepted, which says more of those with our own signature."""
        try:
            await self._verify(token)
        except OwnTokenRejected as error:
            return str(error)
        except jwt.PyJWTError:
            pass
        return _NEEDED

    async def _verify(self, token: str) -> AccessToken:
        claims = await self._tokens.verify(token)
        is_of_session = self._sessions and claims["iss"] == ISSUER and not is_from_backend(claims)
        if is_of_session:
            read_session_id(claims)
        return AccessToken(
            token=token,
            client_id=claims["iss"],
            scopes=sorted(scopes.read_scopes(claims.get("scope"))) if is_of_session else [scopes.ALL],
            expires_at=int(claims["exp"]),
            subject=claims["sub"],
            claims=claims,
        )


class RequireToken:
    """Answers requests without a valid token with 401, and those beyond its scope with 403.

    FastMCP's own responses differ by method. `find_scope` returns what a path needs; a path without a scope is refused.
    With `optional`, requests without any token pass.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        find_scope: Callable[[str], scopes.Scope | None],
        verifier: BearerTokenVerifier,
        resource_url: str | None = None,
        optional: bool = False,
    ) -> None:
        self._app = app
        self._find_scope = find_scope
        self._verifier = verifier
        self._optional = optional
        self._resource_url = resource_url

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        user = scope.get("user")
        if isinstance(user, AuthenticatedUser):
            token = user.access_token
            set_owner(scope, BACKEND if is_from_backend(token.claims or {}) else token.subject or token.client_id)
        needed = self._find_scope(scope["path"]) if scope["type"] == "http" else scopes.PUBLIC
        if needed == scopes.PUBLIC:
            return await self._app(scope, receive, send)
        if isinstance(user, AuthenticatedUser):
            allows = scopes.includes(user.access_token.scopes, needed) or (needed is None and not _has_route(scope))
            return await (self._app if allows else self._refuse(needed))(scope, receive, send)
        sent = next((value for name, value in scope["headers"] if name == b"authorization"), None)
        if self._optional and sent is None:
            return await self._app(scope, receive, send)
        return await (await self._reject(sent))(scope, receive, send)

    async def _reject(self, sent: bytes | None) -> JSONResponse:
        token = (sent or b"").partition(b" ")[2].decode("latin-1").strip()
        sentence = await self._verifier.explain(token)
        return reject_token(sentence, has_token=sent is not None, resource_url=self._resource_url)

    def _refuse(self, needed: scopes.Scope | None) -> JSONResponse:
        error = 'error="insufficient_scope"' + (f', scope="{needed}"' if needed in scopes.TOKEN_SCOPES else "")
        content = {"error": "insufficient_scope", "error_description": scopes.explain_missing(needed)}
        return JSONResponse(content, 403, {"www-authenticate": _render_challenge(error, self._resource_url)})


def reject_token(sentence: str, *, has_token: bool = True, resource_url: str | None) -> JSONResponse:
    content = {"error": "invalid_token", "error_description": sentence}
    error = 'error="invalid_token"' if has_token else ""  # RFC 6750, section 3.1
    return JSONResponse(content, 401, {"www-authenticate": _render_challenge(error, resource_url)})


def _render_challenge(error: str, resource_url: str | None) -> str:
    metadata = f'resource_metadata="{build_resource_metadata_url(AnyHttpUrl(resource_url))}"' if resource_url else ""
    return f"Bearer {', '.join(filter(None, (error, metadata)))}".strip()


def _has_route(scope: Scope) -> bool:
    return any(isinstance(route, Route) and route.path == scope["path"] for route in scope["app"].routes)
