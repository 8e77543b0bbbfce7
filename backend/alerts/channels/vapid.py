"""The key by which push services recognise this server (RFC 8292). It is made once and stored in the database."""

import base64
from datetime import datetime, timedelta

import jwt
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePrivateKey, derive_private_key
from cryptography.hazmat.primitives.asymmetric.ec import generate_private_key as generate_ec_key
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from common.database import NO_USER, Database

_KEY = "SELECT vapid_key(%(candidate)s) AS key"
_SCALAR_BYTES = 32
_LIFETIME = timedelta(hours=12)  # push services accept at most 24 hours


class VapidKey:
    def __init__(self, private: EllipticCurvePrivateKey) -> None:
        self._private = private
        self.public = encode_base64url(encode_point(private))
        """What a page gives to `pushManager.subscribe` as `applicationServerKey`."""

    @classmethod
    def from_bytes(cls, scalar: bytes) -> "VapidKey":
        return cls(derive_private_key(int.from_bytes(scalar), SECP256R1()))

    def authorize(self, audience: str, contact: str | None, now: datetime) -> str:
        """Returns the header `Authorization` for a push service."""
        claims = {"aud": audience, "exp": int((now + _LIFETIME).timestamp())}
        token = jwt.encode(claims | ({"sub": contact} if contact else {}), self._private, algorithm="ES256")
        return f"vapid t={token}, k={self.public}"


async def load_vapid_key(database: Database) -> VapidKey:
    """Returns the key of this installation, which the first process makes."""
    candidate = generate_ec_key(SECP256R1()).private_numbers().private_value.to_bytes(_SCALAR_BYTES)
    row = await database.fetch_one(NO_USER, _KEY, candidate=candidate)
    assert row is not None
    return VapidKey.from_bytes(row["key"])


def encode_point(key: EllipticCurvePrivateKey) -> bytes:
    return key.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)


def encode_base64url(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()
