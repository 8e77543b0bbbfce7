"""A push service on loopback: it checks signatures as RFC 8292 says, decrypts as RFC 8291 says, and counts."""

import asyncio
import json
import secrets
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric.ec import (
    ECDH,
    SECP256R1,
    EllipticCurvePrivateKey,
    EllipticCurvePublicKey,
    generate_private_key,
)
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from backend.alerts.channels.targets import decode_base64url
from backend.alerts.channels.vapid import encode_base64url, encode_point
from tests.channels.http_server import Answer, HttpServer, Received, respond, serve_http

DAY_SECONDS = 86_400


class Browser:
    """A subscription of a browser, which alone can read what is sent to it."""

    def __init__(self, endpoint: str, application_key: str) -> None:
        self.private: EllipticCurvePrivateKey = generate_private_key(SECP256R1())
        self.auth = secrets.token_bytes(16)
        self.application_key = application_key
        self.shown: list[dict[str, Any]] = []
        self.subscription = {
            "endpoint": endpoint,
            "expirationTime": None,
            "keys": {
                "p256dh": encode_base64url(encode_point(self.private)),
                "auth": encode_base64url(self.auth),
            },
        }

    def show(self, body: bytes) -> None:
        self.shown.append(json.loads(decrypt(body, self.private, self.auth)))


def decrypt(body: bytes, private: EllipticCurvePrivateKey, auth: bytes) -> bytes:
    salt, record_size, key_size = body[:16], int.from_bytes(body[16:20]), body[20]
    sender, record = body[21 : 21 + key_size], body[21 + key_size :]
    assert len(body) <= record_size == 4096
    shared = private.exchange(ECDH(), EllipticCurvePublicKey.from_encoded_point(SECP256R1(), sender))
    secret = HKDF(SHA256(), 32, auth, b"WebPush: info\0" + encode_point(private) + sender).derive(shared)
    key = HKDF(SHA256(), 16, salt, b"Content-Encoding: aes128gcm\0").derive(secret)
    nonce = HKDF(SHA256(), 12, salt, b"Content-Encoding: nonce\0").derive(secret)
    content = AESGCM(key).decrypt(nonce, record, None).rstrip(b"\0")
    assert content[-1] == 2, "the delimiter of the last record is missing"
    return content[:-1]


@dataclass
class PushService:
    http: HttpServer
    answers: dict[str, Answer] = field(default_factory=dict)
    """Answers by path, in place of 201."""
    browsers: dict[str, Browser] = field(default_factory=dict)
    count: Counter[str] = field(default_factory=Counter)
    """How often each topic was accepted."""
    contacts: list[str | None] = field(default_factory=list)

    @property
    def port(self) -> int:
        return self.http.port

    def subscribe(self, application_key: str, answer: Answer | None = None) -> Browser:
        path = f"/push/{secrets.token_urlsafe(16)}"
        browser = self.browsers[path] = Browser(f"{self.http.origin}{path}", application_key)
        if answer is not None:
            self.answers[path] = answer
        return browser

    async def handle(self, request: Received, writer: asyncio.StreamWriter) -> None:
        browser = self.browsers.get(request.path)
        if browser is None:
            return await respond(404)(request, writer)
        if answer := self.answers.get(request.path):
            return await answer(request, writer)
        if not self._is_signed(request.headers, browser.application_key):
            return await respond(403)(request, writer)
        headers = request.headers
        assert (headers["ttl"], headers["urgency"], headers["content-encoding"]) == ("43200", "high", "aes128gcm")
        browser.show(request.body)
        self.count[headers["topic"]] += 1
        return await respond(201)(request, writer)

    def _is_signed(self, headers: Any, application_key: str) -> bool:
        scheme, _, parameters = headers["authorization"].partition(" ")
        values = dict(part.strip().split("=", 1) for part in parameters.split(","))
        key = EllipticCurvePublicKey.from_encoded_point(SECP256R1(), decode_base64url(values["k"]))
        try:
            claims = jwt.decode(values["t"], key, algorithms=["ES256"], audience=self.http.origin)
        except jwt.InvalidTokenError:
            return False
        self.contacts.append(claims.get("sub"))
        return scheme == "vapid" and values["k"] == application_key and claims["exp"] <= time.time() + DAY_SECONDS


@asynccontextmanager
async def serve_push() -> AsyncIterator[PushService]:
    async with serve_http() as http:
        service = PushService(http)
        http.answer = service.handle
        yield service
