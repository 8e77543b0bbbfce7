"""Tokens of OAuth clients, for the token endpoint of the MCP SDK: by a code, or by the refresh token before."""

import math
import time
from collections.abc import Sequence
from typing import Any

import jwt
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    OAuthAuthorizationServerProvider,
    RefreshToken,
    RegistrationError,
    TokenError,
)
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken

from backend.accounts.codes import take_code
from backend.accounts.grants import Grant, Grants
from backend.accounts.sessions import AccountDisabled
from backend.api.dependencies import Services
from backend.api.oauth.clients import MAX_REDIRECT_URIS, PUBLIC_CLIENT, clean_name, digest_id, is_redirect_uri
from backend.api.oauth.server import REFRESH, AuthorizationServer
from common.tokens import CLIENT_SCOPES, MODE, AccessTokenVerifier, make_token

ACCESS_SECONDS = 600
_REDIRECT_URIS = (
    f"redirect_uris must be 1 to {MAX_REDIRECT_URIS} addresses, https://…, http://localhost… or of a scheme of your "
    "program, without fragment, user name and parameters of the response."
)


class Code(AuthorizationCode):
    name: str
    address: str
    session_id: str | None


class PresentedRefreshToken(RefreshToken):
    grant_id: str
    generation: int


class TokenProvider(OAuthAuthorizationServerProvider[Code, PresentedRefreshToken, AccessToken]):
    """What the SDK's endpoints ask for; all clients are public ones, so no secret is stored for any."""

    def __init__(self, server: AuthorizationServer, services: Services) -> None:
        self._server = server
        self._database = services.database
        self._grants = Grants(services.database, services.sessions)

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        """Returns a client as the token endpoint needs it; its metadata document is read only when the user allows it.

        Codes and refresh tokens are bound to the id.
        """
        if not self._server.clients.is_known(client_id):
            return None
        return OAuthClientInformationFull(client_id=client_id, token_endpoint_auth_method=PUBLIC_CLIENT)

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        """Sets the id, which holds what is known of the client, and what the client has to expect."""
        uris = [str(uri) for uri in client_info.redirect_uris or ()]
        if not 0 < len(uris) <= MAX_REDIRECT_URIS or not all(map(is_redirect_uri, uris)):
            raise RegistrationError("invalid_redirect_uri", _REDIRECT_URIS)
        client_info.client_id = self._server.clients.register(clean_name(client_info.client_name), uris)
        client_info.token_endpoint_auth_method = PUBLIC_CLIENT
        client_info.client_secret = client_info.client_secret_expires_at = None
        client_info.grant_types = ["authorization_code", "refresh_token"]
        client_info.scope = " ".join(CLIENT_SCOPES)

    async def authorize(self, client: OAuthClientInformationFull, params: AuthorizationParams) -> str:
        raise NotImplementedError("the user decides on the page")

    async def load_authorization_code(self, client: OAuthClientInformationFull, authorization_code: str) -> Code | None:
        """Returns a code, which is gone then, whoever has sent it."""
        taken = await take_code(self._database, authorization_code, "authorization")
        if taken is None or taken.details["client"] != digest_id(client.client_id):
            return None
        details: dict[str, Any] = taken.details
        return Code(
            code=authorization_code,
            scopes=details["scopes"],
            expires_at=math.inf,  # an expired one is not found
            client_id=client.client_id,
            code_challenge=details["challenge"],
            redirect_uri=details["redirect_uri"],
            redirect_uri_provided_explicitly=True,
            subject=taken.user_id,
            name=details["name"],
            address=details["address"],
            session_id=details["by"],
        )

    async def exchange_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: Code
    ) -> OAuthToken:
        user_id = authorization_code.subject
        assert user_id
        scopes = authorization_code.scopes
        try:
            grant = await self._grants.begin(
                user_id,
                name=authorization_code.name,
                address=authorization_code.address,
                scopes=scopes,
                by=authorization_code.session_id,
            )
        except AccountDisabled:
            raise TokenError("invalid_grant", "authorization code does not exist") from None
        return self._make_tokens(client, user_id, grant, scopes)

    async def load_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: str
    ) -> PresentedRefreshToken | None:
        claims = await read_token(self._server.refresh_tokens, client.client_id, refresh_token)
        if claims is None:
            return None
        return PresentedRefreshToken(
            token=refresh_token,
            client_id=client.client_id,
            scopes=claims["scope"].split(),
            subject=claims["sub"],
            grant_id=claims["jti"],
            generation=claims["generation"],
        )

    async def exchange_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: PresentedRefreshToken, scopes: list[str]
    ) -> OAuthToken:
        user_id = refresh_token.subject
        assert user_id
        grant = await self._grants.refresh(user_id, refresh_token.grant_id, refresh_token.generation)
        if grant is None:
            raise TokenError("invalid_grant", "refresh token does not exist")
        return self._make_tokens(client, user_id, grant, scopes)

    async def load_access_token(self, token: str) -> AccessToken | None:
        raise NotImplementedError("only the MCP server takes access tokens")

    async def revoke_token(self, token: AccessToken | PresentedRefreshToken) -> None:
        raise NotImplementedError("the route does it")

    async def revoke(self, client_id: str, token: str) -> None:
        """Ends the grant of a client's refresh or access token; any other token changes nothing (RFC 7009)."""
        for verifier in (self._server.refresh_tokens, self._server.access_tokens):
            if claims := await read_token(verifier, client_id, token):
                await self._grants.end(claims["sub"], claims["jti"], by="client")

    def _make_tokens(
        self, client: OAuthClientInformationFull, user_id: str, grant: Grant, scopes: Sequence[str]
    ) -> OAuthToken:
        claims = {"jti": grant.id, "client": digest_id(client.client_id), MODE: self._server.mode}
        access = make_token(
            self._server.secret,
            user_id,
            audience=self._server.resource,
            expires=int(time.time()) + ACCESS_SECONDS,
            scope=" ".join(scopes),
            **claims,
        )
        refresh = make_token(
            self._server.secret,
            user_id,
            audience=REFRESH,
            expires=int(grant.expires_at.timestamp()),
            scope=" ".join(grant.scopes),
            generation=grant.generation,
            **claims,
        )
        return OAuthToken(access_token=access, expires_in=ACCESS_SECONDS, scope=" ".join(scopes), refresh_token=refresh)


async def read_token(verifier: AccessTokenVerifier, client_id: str, token: str) -> dict[str, Any] | None:
    """Returns the claims of a valid token that was made for this client; None for any other."""
    try:
        claims = await verifier.verify(token)
    except jwt.PyJWTError:
        return None
    return claims if claims.get("client") == digest_id(client_id) else None
