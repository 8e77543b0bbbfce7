"""Which tokens are accepted, and what they allow."""

from fastmcp.server.auth import AuthProvider, RemoteAuthProvider
from fastmcp.server.dependencies import get_access_token
from fastmcp.server.middleware import CallNext, MiddlewareContext
from fastmcp.server.middleware import Middleware as CallMiddleware
from fastmcp.tools import ToolResult
from mcp_types import CallToolRequestParams
from starlette.middleware import Middleware

from common import scopes
from common.database.ended_sessions import EndedSessions
from common.database.session_uses import SessionUses
from common.tokens import CLIENT_SCOPES, ISSUER, AccessTokenVerifier, Keys, SharedSecret
from common.tool_server.identity import BearerTokenVerifier, RequireToken
from mcp_server.errors import ScopeMissing
from mcp_server.open_sessions import EndWithSession
from mcp_server.settings import McpSettings


def create_verifier(settings: McpSettings) -> BearerTokenVerifier | None:
    if settings.mcp_token_secret is None:
        return None
    issuers: dict[str, Keys] = {ISSUER: SharedSecret(settings.mcp_token_secret.get_secret_value())}
    if settings.auth_issuer and (keys := settings.create_provider_keys()):
        issuers[settings.auth_issuer] = keys
    tokens = AccessTokenVerifier(issuers, audience=settings.mcp_url, mode=settings.auth_mode)
    return BearerTokenVerifier(tokens, sessions=settings.signs_in)


def create_auth_provider(settings: McpSettings, verifier: BearerTokenVerifier | None) -> AuthProvider | None:
    if not settings.signs_in or verifier is None or not settings.authorization_server:
        return verifier if settings.signs_in else None
    return RemoteAuthProvider(
        verifier,
        # A text and not a URL, so that it is spelled as in the tokens.
        authorization_servers=[settings.authorization_server],  # pyright: ignore[reportArgumentType]
        base_url=settings.mcp_url.removesuffix("/mcp"),
        scopes_supported=[*CLIENT_SCOPES] if settings.has_accounts else None,
        resource_name="Todo",
    )


def create_token_middleware(
    settings: McpSettings, verifier: BearerTokenVerifier | None, ended: EndedSessions, uses: SessionUses
) -> list[Middleware]:
    """Every path needs a token with its scope but those that are public."""
    if verifier is None:
        assert not settings.signs_in, "settings without a secret are rejected"
        return []
    url = settings.mcp_url if settings.authorization_server else None
    find_scope = scopes.find_tool_server_scope
    if not settings.signs_in:
        return [
            *verifier.get_middleware(),
            Middleware(RequireToken, find_scope=find_scope, verifier=verifier, optional=True),
        ]
    return [
        Middleware(RequireToken, find_scope=find_scope, verifier=verifier, resource_url=url),
        Middleware(EndWithSession, ended=ended, uses=uses, resource_url=url),
    ]


class CheckScope(CallMiddleware):
    """Rejects calls of tools that the token does not allow; every token may list all of them."""

    async def on_call_tool(
        self,
        context: MiddlewareContext[CallToolRequestParams],
        call_next: CallNext[CallToolRequestParams, ToolResult],
    ) -> ToolResult:
        token, name = get_access_token(), context.message.name
        if token is not None and not scopes.includes(token.scopes, scopes.TOOLS.get(name)):
            assert context.fastmcp_context is not None
            if await context.fastmcp_context.fastmcp.get_tool(name) is not None:  # others are told that there is none
                raise ScopeMissing(sentence=scopes.explain_missing(scopes.TOOLS.get(name)))
        return await call_next(context)
