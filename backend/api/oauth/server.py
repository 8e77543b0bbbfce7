"""The authorization server of MCP clients: what all of its routes share, and its metadata."""

from dataclasses import dataclass
from typing import Any

from fastapi import Request

from backend.api.dependencies import Services
from backend.api.oauth.clients import PUBLIC_CLIENT, Clients
from backend.settings import BackendSettings
from common.tokens import CLIENT_SCOPES, ISSUER, AccessTokenVerifier, SharedSecret

REFRESH = "todo-assistant/refresh"
"""The audience of refresh tokens."""


@dataclass(frozen=True, slots=True)
class AuthorizationServer:
    """`resource` is the address of the MCP server, the one resource that tokens are made for."""

    issuer: str
    resource: str
    secret: str
    mode: str
    clients: Clients
    access_tokens: AccessTokenVerifier
    refresh_tokens: AccessTokenVerifier

    @classmethod
    def create(cls, settings: BackendSettings) -> "AuthorizationServer":
        assert settings.mcp_token_secret
        secret = settings.mcp_token_secret.get_secret_value()
        keys = {ISSUER: SharedSecret(secret)}
        return cls(
            issuer=settings.address,
            resource=settings.mcp_url,
            secret=secret,
            mode=settings.auth_mode,
            clients=Clients(secret),
            access_tokens=AccessTokenVerifier(keys, audience=settings.mcp_url, mode=settings.auth_mode),
            refresh_tokens=AccessTokenVerifier(keys, audience=REFRESH, mode=settings.auth_mode),
        )

    def metadata(self) -> dict[str, Any]:
        """Returns the metadata (RFC 8414); its texts are spelled as in tokens and in the MCP server's metadata."""
        return {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "registration_endpoint": f"{self.issuer}/register",
            "revocation_endpoint": f"{self.issuer}/revoke",
            "scopes_supported": [*CLIENT_SCOPES],
            "response_types_supported": ["code"],
            "response_modes_supported": ["query"],
            "grant_types_supported": ["authorization_code", "refresh_token"],
            "token_endpoint_auth_methods_supported": [PUBLIC_CLIENT],
            "revocation_endpoint_auth_methods_supported": [PUBLIC_CLIENT],
            "code_challenge_methods_supported": ["S256"],
            "authorization_response_iss_parameter_supported": True,
            "client_id_metadata_document_supported": True,
        }


def get_server(request: Request) -> AuthorizationServer:
    return request.app.state.authorization_server


def get_services(request: Request) -> Services:
    return request.app.state.services
