"""Authorization requests of OAuth clients: what is checked before the user is asked, and where the answer goes."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from starlette.datastructures import QueryParams

from backend.api.oauth.clients import OAuthClient
from backend.api.oauth.server import AuthorizationServer
from backend.errors import BackendError, shorten
from common.text import join_words
from common.tokens import CLIENT_SCOPES

_PARAMETERS = (
    *("client_id", "redirect_uri", "response_type", "code_challenge", "code_challenge_method"),
    *("state", "scope", "resource"),
)
_CHALLENGE = re.compile("[A-Za-z0-9_-]{43}")  # BASE64URL of a SHA-256
_MAX_STATE_LENGTH = 4_000


class UntrustedRequest(BackendError):
    """An authorization request whose answer must not be sent to the address in it."""

    code, status = "untrusted_authorization", 400


@dataclass(frozen=True, slots=True)
class AuthorizationProblem:
    """An error that the client is told: `error` is a code of RFC 6749, section 4.1.2.1, or of RFC 8707."""

    error: str
    sentence: str


@dataclass(frozen=True, slots=True)
class AuthorizationRequest:
    """A request of a known client with one of its redirect addresses; with a `problem` it cannot be allowed."""

    client: OAuthClient
    redirect_uri: str
    state: str | None
    scopes: tuple[str, ...]
    challenge: str
    problem: AuthorizationProblem | None

    def answer(self, issuer: str, **parameters: str) -> str:
        """Returns the redirect address with the answer in its query, and whose it is (RFC 9207)."""
        state = {} if self.state is None else {"state": self.state}
        separator = "&" if "?" in self.redirect_uri else "?"
        return f"{self.redirect_uri}{separator}{urlencode({**parameters, **state, 'iss': issuer})}"


async def read_request(query: QueryParams, server: AuthorizationServer) -> AuthorizationRequest:
    """Raises `UntrustedRequest` for one that names no client, or a redirect address that is not the client's."""
    for name in _PARAMETERS:
        if len(query.getlist(name)) > 1:
            raise UntrustedRequest(f"The link has {name} twice. Start again in the program that sent you here.")
    client = await server.clients.find(query.get("client_id", ""))
    if client is None:
        raise UntrustedRequest(
            "This server does not know the program that sent you here. Remove its connection there, and connect again."
        )
    redirect_uri = query.get("redirect_uri", "")
    if not client.allows(redirect_uri):
        raise UntrustedRequest(
            f"The program that sent you here wants the answer at {shorten(redirect_uri) or 'no address'}, which it has "
            "not registered. Remove its connection there, and connect again."
        )
    state = query.get("state")
    if state is not None and len(state) > _MAX_STATE_LENGTH:
        raise UntrustedRequest(f"The state in the link has more than {_MAX_STATE_LENGTH} characters.")
    scopes, challenge = query.get("scope", "").split(), query.get("code_challenge", "")
    return AuthorizationRequest(
        client=client,
        redirect_uri=redirect_uri,
        state=state,
        scopes=_expand(scopes),
        challenge=challenge,
        problem=_find_problem(query, scopes, challenge, server.resource),
    )


def _expand(scopes: Sequence[str]) -> tuple[str, ...]:
    """Returns all scopes if none is named, and that of reading with that of changing."""
    return CLIENT_SCOPES if not scopes or "tasks" in scopes else ("tasks:read",)


def _find_problem(
    query: QueryParams, scopes: Sequence[str], challenge: str, resource: str
) -> AuthorizationProblem | None:
    if query.get("response_type") != "code":
        return AuthorizationProblem("unsupported_response_type", "The response_type must be code.")
    if query.get("code_challenge_method") != "S256" or not _CHALLENGE.fullmatch(challenge):
        return AuthorizationProblem(
            "invalid_request", "PKCE is required: a code_challenge with code_challenge_method=S256."
        )
    if not set(scopes) <= {*CLIENT_SCOPES}:
        return AuthorizationProblem("invalid_scope", f"The scope can be {join_words(CLIENT_SCOPES, 'or')}.")
    if query.get("resource", resource) != resource:
        return AuthorizationProblem("invalid_target", f"The resource must be {resource}.")
    return None
