"""An identity provider (OpenID Connect) that signs everybody in at once, and can answer wrongly in many ways."""

import asyncio
import base64
import hashlib
import json
import secrets
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, urlencode

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from tests.serving import serve
from tests.tokens import SigningKey, mint_token, write_token

CLIENT, CLIENT_SECRET = "todo", "a secret: of the client/with signs+"
RS, ES, ED = SigningKey("RS256", "rs"), SigningKey("ES256", "es"), SigningKey("EdDSA", "ed")
HUGE = 5_000_000


@dataclass
class IdentityProvider:
    """`sub` and `claims` are those of whoever signs in next; the other fields say how it answers."""

    url: str = ""
    sub: str = "ann-1"
    claims: dict[str, Any] = field(default_factory=lambda: {"preferred_username": "Ann", "groups": ["household"]})
    key: SigningKey = RS
    published: list[SigningKey] = field(default_factory=lambda: [RS, ES, ED])
    discovery: dict[str, Any] = field(default_factory=dict)
    """Changes of the discovery document; None removes a field."""
    id_token: dict[str, Any] = field(default_factory=dict)
    """Changes of the claims of ID tokens; None removes a claim."""
    mint: Callable[[dict[str, Any]], str] | None = None
    """Makes ID tokens in place of `key`."""
    authorization: dict[str, Any] = field(default_factory=dict)
    """Changes of the parameters with which the browser is sent back; None removes one."""
    tokens: dict[str, Any] = field(default_factory=dict)
    """Changes of the token endpoint's answer; None removes a field."""
    userinfo: dict[str, Any] | None = field(default_factory=dict)
    """Claims of the userinfo endpoint beside `sub`; None: there is no such endpoint."""
    failing: dict[str, Response] = field(default_factory=dict)
    """Answers by path, in place of the right ones."""
    silent: set[str] = field(default_factory=set)
    """Paths that are not answered."""
    requests: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    """Paths and parameters."""
    refresh_tokens: dict[str, str] = field(default_factory=dict)
    """The valid ones with their subjects; each can be used once."""
    used: list[str] = field(default_factory=list)
    _codes: dict[str, dict[str, str]] = field(default_factory=dict)

    def count(self, path: str) -> int:
        return sum(one == path for one, _ in self.requests)

    async def answer(self, request: Request) -> Response:
        path = request.url.path
        sent = dict(await request.form()) if request.method == "POST" else dict(request.query_params)
        self.requests.append((path, {name: str(value) for name, value in sent.items()}))
        if path in self.silent:
            await asyncio.sleep(3600)
        if path in self.failing:
            return self.failing[path]
        match path:
            case "/.well-known/openid-configuration":
                return JSONResponse(self._describe())
            case "/keys":
                return JSONResponse({"keys": [key.jwk for key in self.published]})
            case "/authorize":
                return self._authorize(dict(request.query_params))
            case "/token":
                return self._give_tokens(request, self.requests[-1][1])
            case _:
                return JSONResponse({"sub": self.sub, **(self.userinfo or {})})

    def _describe(self) -> dict[str, Any]:
        document = {
            "issuer": self.url,
            "authorization_endpoint": f"{self.url}/authorize",
            "token_endpoint": f"{self.url}/token",
            "jwks_uri": f"{self.url}/keys",
            "userinfo_endpoint": f"{self.url}/userinfo" if self.userinfo is not None else None,
            "end_session_endpoint": f"{self.url}/end",
            "scopes_supported": ["openid", "profile", "email", "offline_access"],
            "authorization_response_iss_parameter_supported": True,
        }
        return _change(document, self.discovery)

    def _authorize(self, sent: dict[str, str]) -> Response:
        code = secrets.token_urlsafe(16)
        self._codes[code] = sent
        answer = _change({"code": code, "state": sent["state"], "iss": self.url}, self.authorization)
        return RedirectResponse(f"{sent['redirect_uri']}?{urlencode(answer, doseq=True)}", 303)

    def _give_tokens(self, request: Request, sent: dict[str, str]) -> Response:
        scheme, _, credentials = request.headers.get("authorization", "").partition(" ")
        client, _, secret = base64.b64decode(credentials).decode().partition(":")
        if (scheme, unquote(client), unquote(secret)) != ("Basic", CLIENT, CLIENT_SECRET):
            return JSONResponse({"error": "invalid_client"}, 401)
        if sent["grant_type"] == "refresh_token":
            self.used.append(sent["refresh_token"])
            sub = self.refresh_tokens.pop(sent["refresh_token"], None)
            return self._render_tokens(sub, {}) if sub else JSONResponse({"error": "invalid_grant"}, 400)
        begun = self._codes.pop(sent["code"], None)
        digest = hashlib.sha256(sent.get("code_verifier", "").encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).decode().rstrip("=")
        if begun is None or (begun["code_challenge"], begun["redirect_uri"]) != (challenge, sent["redirect_uri"]):
            return JSONResponse({"error": "invalid_grant"}, 400)
        return self._render_tokens(self.sub, {"nonce": begun["nonce"]})

    def _render_tokens(self, sub: str, claims: dict[str, Any]) -> Response:
        access, refresh = secrets.token_urlsafe(16), secrets.token_urlsafe(16)
        self.refresh_tokens[refresh] = sub
        digest = hashlib.sha512 if self.key.algorithm == "EdDSA" else hashlib.sha256
        half = digest(access.encode()).digest()[: digest().digest_size // 2]
        standard = {"iss": self.url, "sub": sub, "aud": CLIENT, "iat": int(time.time()), "exp": int(time.time()) + 300}
        at_hash = base64.urlsafe_b64encode(half).decode().rstrip("=")
        payload = _change(standard | {"at_hash": at_hash} | self.claims | claims, self.id_token)
        left_out = next((name for name, value in self.id_token.items() if value is None), "")
        token = self.mint(payload) if self.mint else self.key.mint(without=left_out, **payload)
        answer = {"access_token": access, "token_type": "Bearer", "id_token": token, "refresh_token": refresh}
        return JSONResponse(_change(answer, self.tokens))


def sign_with_secret(claims: dict[str, Any]) -> str:
    return mint_token(CLIENT_SECRET, **claims)


def leave_unsigned(claims: dict[str, Any]) -> str:
    return write_token({"alg": "none"}, claims)


def sign_with_unknown_key(claims: dict[str, Any]) -> str:
    return SigningKey("RS256", "unknown").mint(**claims)


def sign_with_false_kid(claims: dict[str, Any]) -> str:
    return mint_token(SigningKey("RS256", "unknown").private, algorithm="RS256", kid=RS.kid, **claims)


def _change(values: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in (values | changes).items() if value is not None}


@asynccontextmanager
async def run_identity_provider() -> AsyncIterator[IdentityProvider]:
    provider = IdentityProvider()
    paths = ("/.well-known/openid-configuration", "/keys", "/authorize", "/token", "/userinfo")
    app = Starlette(routes=[Route(path, provider.answer, methods=["GET", "POST"]) for path in paths])
    async with serve(app, lifespan="off") as provider.url:
        yield provider


def huge_answer() -> Response:
    return Response(json.dumps({"padding": "x" * HUGE}), media_type="application/json")
