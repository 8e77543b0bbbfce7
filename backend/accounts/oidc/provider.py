"""The identity provider: its discovery document, and the requests of OpenID Connect."""

import logging
import time
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

import httpx2
from authlib.integrations.base_client import OAuthError
from authlib.oauth2.rfc6749.parameters import prepare_grant_uri
from authlib.oauth2.rfc7636 import create_s256_code_challenge

from backend.accounts.oidc.allowed import is_allowed
from backend.accounts.oidc.client import ProviderUnavailable, fetch_object, open_client
from backend.accounts.oidc.id_tokens import InvalidIdToken, check_id_token
from backend.accounts.oidc.transactions import SignInTransaction
from backend.settings import BackendSettings
from common.settings import is_http
from common.single_flight import SingleFlight
from common.text import is_storable
from common.tokens import KeySet

log = logging.getLogger(__name__)

_DISCOVERY = "/.well-known/openid-configuration"
_FRESH_SECONDS = 3600.0  # of a discovery document
_PAUSE_SECONDS = 2.0  # after one that could not be read
_OFFLINE = "offline_access"
_MAX_NAME_LENGTH = 100
_MAX_TOKEN_LENGTH = 16_000


class NotAllowed(Exception):
    """The provider's user may not use this server, or no longer."""

    def __init__(self, subject: str) -> None:
        super().__init__(subject)
        self.subject = subject


class Refused(Exception):
    """The provider refuses a code or a refresh token."""


@dataclass(frozen=True, slots=True)
class Tokens:
    access_token: str
    id_token: str | None
    refresh_token: str | None
    refresh_seconds: float | None
    """How long the refresh token is valid, where the provider tells."""


@dataclass(frozen=True, slots=True)
class _Metadata:
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    userinfo_endpoint: str | None
    end_session_endpoint: str | None
    offers_refresh: bool
    names_itself: bool
    """Whether it sends `iss` with each authorization response (RFC 9207)."""


class Provider:
    """The provider of OIDC_ISSUER; what it publishes is read when it is needed, and again after an hour."""

    def __init__(self, settings: BackendSettings) -> None:
        assert settings.oidc_issuer
        assert settings.oidc_client_id
        self.issuer, self.name = settings.oidc_issuer, settings.provider_name
        self._client_id, self._scopes, self._rules = (
            settings.oidc_client_id,
            settings.oidc_scopes,
            settings.oidc_allowed,
        )
        secret = settings.oidc_client_secret
        self._secret = secret.get_secret_value() if secret else None
        self._metadata: _Metadata | None = None
        self._keys: KeySet | None = None
        self._read_at = self._failed_at = float("-inf")
        self._refresh_metadata = SingleFlight(self._fetch_metadata)

    async def create_authorization_url(self, transaction: SignInTransaction, redirect_uri: str) -> str:
        """Returns where the browser goes to sign in. Raises `ProviderUnavailable`."""
        metadata = await self._load_metadata()
        scopes, prompt = self._scopes, None
        if metadata.offers_refresh and _OFFLINE not in scopes.split():
            # Consent is asked for, because providers may ignore the scope without it (Core, section 11).
            scopes, prompt = f"{scopes} {_OFFLINE}", "consent"
        return prepare_grant_uri(
            metadata.authorization_endpoint,
            self._client_id,
            "code",
            redirect_uri,
            scopes,
            transaction.state,
            nonce=transaction.nonce,
            code_challenge=create_s256_code_challenge(transaction.verifier),
            code_challenge_method="S256",
            prompt=prompt,
        )

    async def is_from_here(self, issuer: str | None) -> bool:
        """Whether an authorization response with this `iss` is of this provider (RFC 9207, section 2.4)."""
        if issuer is None:
            return not (await self._load_metadata()).names_itself
        return issuer == self.issuer

    async def exchange_code(
        self, code: str, transaction: SignInTransaction, redirect_uri: str
    ) -> tuple[Tokens, dict[str, Any]]:
        """Returns the tokens for a code, and the claims of the user.

        Raises `Refused`, `NotAllowed`, `InvalidIdToken` and `ProviderUnavailable`.
        """
        tokens = await self._fetch_tokens(
            grant_type="authorization_code", code=code, redirect_uri=redirect_uri, code_verifier=transaction.verifier
        )
        if tokens.id_token is None:
            raise InvalidIdToken("none was sent")
        return tokens, await self._read_claims(tokens, nonce=transaction.nonce)

    async def refresh(self, refresh_token: str) -> Tokens:
        """Returns new tokens; the refresh token is the same one if the provider sends no other.

        Raises `Refused` and `ProviderUnavailable`.
        """
        return await self._fetch_tokens(grant_type="refresh_token", refresh_token=refresh_token)

    async def check_renewal(self, tokens: Tokens, subject: str) -> None:
        """Checks that the tokens of a renewal are of the same user, who is still allowed.

        Raises `NotAllowed`, `InvalidIdToken` and `ProviderUnavailable`.
        """
        await self._read_claims(tokens, nonce=None, subject=subject)

    async def create_sign_out_url(self, id_token: str, return_to: str) -> str | None:
        """Returns where the browser goes to sign out at the provider; None if that is not offered."""
        endpoint = (await self._load_metadata()).end_session_endpoint
        if endpoint is None:
            return None
        query = {"client_id": self._client_id, "id_token_hint": id_token, "post_logout_redirect_uri": return_to}
        return f"{endpoint}{'&' if '?' in endpoint else '?'}{urlencode(query)}"

    async def _fetch_tokens(self, **parameters: str) -> Tokens:
        metadata = await self._load_metadata()
        # Both are escaped before they are joined (RFC 6749, section 2.3.1), which authlib 1.9 does not do.
        secret = self._secret
        auth = httpx2.BasicAuth(quote(self._client_id, safe=""), quote(secret, safe="")) if secret else None
        try:
            async with open_client(self._client_id, secret) as client:
                sent = await client.fetch_token(metadata.token_endpoint, auth=auth, **parameters)
        except OAuthError as error:
            log.warning("the identity provider refused a %s: %s", parameters["grant_type"], ascii(error.error)[:100])
            if error.error == "invalid_grant":
                raise Refused from None
            raise ProviderUnavailable("the token endpoint answered with an error") from None
        return _read_tokens(sent, parameters.get("refresh_token"))

    async def _read_claims(self, tokens: Tokens, *, nonce: str | None, subject: str | None = None) -> dict[str, Any]:
        """Returns the claims of the ID token and of the userinfo endpoint, whose ones are the newer, if allowed."""
        metadata = await self._load_metadata()
        assert self._keys
        claims = dict[str, Any]()
        if tokens.id_token is not None:
            claims = await check_id_token(
                tokens.id_token,
                self._keys,
                issuer=self.issuer,
                client_id=self._client_id,
                access_token=tokens.access_token,
                nonce=nonce,
            )
        expected = subject or claims["sub"]
        _check_subject(claims, expected)
        if metadata.userinfo_endpoint is not None:
            async with open_client(self._client_id) as client:
                authorization = f"Bearer {tokens.access_token}"
                newer = await fetch_object(client, metadata.userinfo_endpoint, authorization=authorization)
            _check_subject({"sub": None} | newer, expected)
            claims |= newer
        if not is_allowed(claims, self._rules):
            raise NotAllowed(expected)
        return claims

    async def _load_metadata(self) -> _Metadata:
        now = time.monotonic()
        if self._metadata is not None and now - self._read_at < _FRESH_SECONDS:
            return self._metadata
        if now - self._failed_at >= _PAUSE_SECONDS:
            try:
                return await self._refresh_metadata()
            except ProviderUnavailable as error:
                self._failed_at = time.monotonic()
                log.warning("the discovery document of OIDC_ISSUER cannot be used: %s", error.reason)
        if self._metadata is not None:
            return self._metadata
        raise ProviderUnavailable("no discovery document")

    async def _fetch_metadata(self) -> _Metadata:
        async with open_client(self._client_id) as client:
            document = await fetch_object(client, self.issuer.rstrip("/") + _DISCOVERY)
        if document.get("issuer") != self.issuer:
            raise ProviderUnavailable(f"its issuer is {ascii(document.get('issuer'))[:200]}, not exactly OIDC_ISSUER")
        metadata = _read_metadata(document, must_be_https=self.issuer.startswith("https:"))
        if self._keys is None or self._metadata is None or self._metadata.jwks_uri != metadata.jwks_uri:
            self._keys = KeySet(metadata.jwks_uri, name="OIDC_ISSUER", fetch=self._fetch_keys)
        self._metadata, self._read_at = metadata, time.monotonic()
        return metadata

    async def _fetch_keys(self) -> dict[str, Any]:
        assert self._metadata
        async with open_client(self._client_id) as client:
            return await fetch_object(client, self._metadata.jwks_uri)


def get_display_name(claims: dict[str, Any]) -> str:
    """Returns how a user is called."""
    for claim in ("preferred_username", "name", "email"):
        name = claims.get(claim)
        if isinstance(name, str) and name.strip() and name.isprintable() and is_storable(name):
            return name.strip()[:_MAX_NAME_LENGTH]
    return str(claims["sub"])[:_MAX_NAME_LENGTH]


def _check_subject(claims: dict[str, Any], expected: str) -> None:
    """Checks whose claims these are (Core, sections 5.3.2 and 12.2)."""
    if claims and claims["sub"] != expected:
        raise InvalidIdToken("sub is another user")


def _read_metadata(document: dict[str, Any], *, must_be_https: bool) -> _Metadata:
    def read(name: str) -> str | None:
        url = document.get(name)
        if url is None:
            return None
        if not isinstance(url, str) or not is_http(url) or (must_be_https and urlsplit(url).scheme != "https"):
            raise ProviderUnavailable(f"its {name} is not an https address")
        return url

    authorization, token, keys = read("authorization_endpoint"), read("token_endpoint"), read("jwks_uri")
    if authorization is None or token is None or keys is None:
        raise ProviderUnavailable("it has no authorization_endpoint, token_endpoint or jwks_uri")
    scopes = document.get("scopes_supported")
    return _Metadata(
        authorization_endpoint=authorization,
        token_endpoint=token,
        jwks_uri=keys,
        userinfo_endpoint=read("userinfo_endpoint"),
        end_session_endpoint=read("end_session_endpoint"),
        offers_refresh=isinstance(scopes, list) and _OFFLINE in scopes,
        names_itself=document.get("authorization_response_iss_parameter_supported") is True,
    )


def _read_tokens(sent: Any, refresh_token: str | None) -> Tokens:
    values = [sent.get(name) for name in ("access_token", "id_token", "refresh_token")]
    if any(value is not None and (not isinstance(value, str) or len(value) > _MAX_TOKEN_LENGTH) for value in values):
        raise ProviderUnavailable("its tokens are no usable texts")
    access, identity, renewed = values
    if not access or str(sent.get("token_type", "")).lower() != "bearer":
        raise ProviderUnavailable("it sent no bearer token")
    seconds = sent.get("refresh_expires_in")  # of Keycloak, where 0 means without end
    is_number = isinstance(seconds, int | float) and not isinstance(seconds, bool) and seconds > 0
    return Tokens(access, identity, renewed or refresh_token, float(seconds) if is_number else None)
