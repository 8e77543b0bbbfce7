"""Encrypts what only this service may read, with a key that is not in the database."""

import secrets

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

_INFO = b"todo-assistant/sealed"
_NONCE_BYTES = 12


class Sealer:
    """AES-256-GCM, with a key that HKDF derives from a secret of the services."""

    def __init__(self, secret: str) -> None:
        key = HKDF(algorithm=SHA256(), length=32, salt=None, info=_INFO).derive(secret.encode())
        self._cipher = AESGCM(key)

    def seal(self, content: bytes, purpose: str) -> bytes:
        """Encrypts a content, which opens only with the same purpose."""
        nonce = secrets.token_bytes(_NONCE_BYTES)
        return nonce + self._cipher.encrypt(nonce, content, purpose.encode())

    def open(self, sealed: bytes, purpose: str) -> bytes | None:
        """Returns the content; None if it was not sealed so, with this key."""
        try:
            return self._cipher.decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], purpose.encode())
        except (InvalidTag, ValueError):
            return None
