"""Creates access tokens, and serves the public keys of an identity provider."""

import base64
import hmac
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from http.server import BaseHTTPRequestHandler
from typing import Any, Literal

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

from tests.serving import serve_in_threads

MCP_TOKEN_SECRET = "4f1d0a76c2b95e83d7fa61c90b3e2485a6d8f7c01b9e3d52"
IDP_SECRET = "9c27e1b4f05d83a6c1e94b7d2f60a8537be1c09d4a6f2e83"
OTHER_SECRET = "d83b5a0f9e7c61248b0f3d95e2a7c4861f5d9b3e0a7c2648"
ISSUER = "https://idp.example"
OWN_ISSUER = "todo-assistant"

# Claims that are not valid seconds since 1970.
NO_TIMES: tuple[Any, ...] = (
    10**400,
    -(10**400),
    10**15,
    1e300,
    float("inf"),
    float("nan"),
    -1,
    -0.5,
    "9999999999",
    True,
)

Algorithm = Literal["RS256", "ES256", "EdDSA"]


def mint_token(key: Any, *, algorithm: str = "HS256", kid: str | None = None, without: str = "", **claims: Any) -> str:
    """Returns a token of alice for ten minutes, with these claims changed and the claim `without` left out."""
    now = int(time.time())
    payload: dict[str, Any] = {"sub": "alice", "iat": now, "exp": now + 600} | claims
    payload.pop(without, None)
    # jwt.encode rejects some invalid claims that a client can send.
    return jwt.api_jws.encode(
        json.dumps(payload).encode(), key, algorithm, {"typ": "JWT"} | ({"kid": kid} if kid else {})
    )


def write_token(header: Any, payload: Any, signature: str = "") -> str:
    """Returns a token with this header, also one that PyJWT refuses to make."""
    parts = (base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in (header, payload))
    return ".".join((*parts, signature))


def sign_with_text(key: bytes, kid: str, **claims: Any) -> str:
    """Returns an HS256 token whose secret is the text of a public key, which PyJWT refuses to make."""
    payload = {"sub": "alice", "exp": int(time.time()) + 600, **claims}
    head = write_token({"alg": "HS256", "kid": kid, "typ": "JWT"}, payload).rpartition(".")[0]
    signature = base64.urlsafe_b64encode(hmac.digest(key, head.encode(), "sha256")).rstrip(b"=")
    return f"{head}.{signature.decode()}"


def mint_mcp_token(user_id: str, mcp_url: str, **claims: Any) -> str:
    """Returns the token that the backend sends with a tool call."""
    payload = {"sub": user_id, "iss": OWN_ISSUER, "aud": mcp_url, "act": {"sub": "todo-assistant/backend"}} | claims
    return mint_token(payload.pop("key", MCP_TOKEN_SECRET), **payload)


class SigningKey:
    """A private key of an identity provider, and its public JWK."""

    def __init__(self, algorithm: Algorithm, kid: str, *, bits: int = 2048) -> None:
        self.algorithm = algorithm
        self.kid = kid
        self.private = _create_private_key(algorithm, kid, bits)
        publish = {"RS256": RSAAlgorithm, "ES256": ECAlgorithm, "EdDSA": OKPAlgorithm}[algorithm]
        self.jwk = json.loads(publish.to_jwk(self.private.public_key())) | {"kid": kid, "use": "sig"}

    def mint(self, **claims: Any) -> str:
        return mint_token(self.private, **{"algorithm": self.algorithm, "kid": self.kid, "iss": ISSUER} | claims)

    @property
    def public_pem(self) -> bytes:
        return self.private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


@cache
def _create_private_key(algorithm: Algorithm, kid: str, bits: int) -> Any:
    """Is cached, because the creation of an RSA key is slow."""
    if algorithm == "RS256":
        return rsa.generate_private_key(public_exponent=65537, key_size=bits)
    return ec.generate_private_key(ec.SECP256R1()) if algorithm == "ES256" else ed25519.Ed25519PrivateKey.generate()


class KeyEndpoint:
    """A JWKS URL; tests can change its keys, status and headers at any time."""

    def __init__(self, url: str, *keys: SigningKey) -> None:
        self.url = url
        self.rotate(*keys)
        self.status = 200
        self.headers: dict[str, str] = {}
        self.requests = 0
        self.silent = False
        """Accepts requests and does not answer them."""
        self.closing = threading.Event()

    def rotate(self, *keys: SigningKey) -> None:
        self.body = json.dumps({"keys": [key.jwk for key in keys]}).encode()


@contextmanager
def key_endpoint(*keys: SigningKey) -> Iterator[KeyEndpoint]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            endpoint.requests += 1
            if endpoint.silent:
                endpoint.closing.wait()
                return
            self.send_response(endpoint.status)
            for name, value in ({"content-type": "application/json"} | endpoint.headers).items():
                self.send_header(name, value)
            self.end_headers()
            with suppress(ConnectionError):  # the client closes the connection early
                self.wfile.write(endpoint.body)

    with serve_in_threads(Handler) as url:
        endpoint = KeyEndpoint(f"{url}/keys", *keys)
        try:
            yield endpoint
        finally:
            endpoint.closing.set()
