"""Web Push: notifications for a browser, encrypted so that its push service cannot read them."""

import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

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
from pydantic import ValidationError

from backend.alerts.channels.channel import Notification, Outcome, Problem, SendResult, shorten
from backend.alerts.channels.http import HttpSender
from backend.alerts.channels.targets import PushTarget, decode_base64url
from backend.alerts.channels.vapid import VapidKey, encode_point
from common.clock import Clock, utc_now
from common.web_origins import AllowedOrigins, parse_url

PUSH_HOSTS = (
    "fcm.googleapis.com",
    "updates.push.services.mozilla.com",
    "*.push.apple.com",
    "*.notify.windows.com",
)
_RECORD_BYTES = 4096  # what every push service accepts (RFC 8030, section 7.2)
MAX_PAYLOAD_BYTES = 3_992
"""RFC 8291 leaves 3,993 bytes of a record to what is sent; the header, the tag and the delimiter have the rest."""
_SALT_BYTES = 16
_SECONDS_TO_LIVE = 43_200
_ANSWERS = {
    401: (Outcome.RETRY, Problem.SIGNATURE),
    403: (Outcome.PERMANENT, Problem.SIGNATURE),
    404: (Outcome.PERMANENT, Problem.ENDED),
    410: (Outcome.PERMANENT, Problem.ENDED),
}


class PushChannel:
    """Sends to endpoints of known push services only: any browser may name any address as its endpoint."""

    def __init__(
        self,
        http: HttpSender,
        key: VapidKey,
        contact: str | None,
        *,
        contact_hosts: AllowedOrigins | None = None,
        clock: Clock = utc_now,
    ) -> None:
        """`contact` is the `sub` of RFC 8292; the services at `contact_hosts` accept nothing without one."""
        self._http = http
        self._key = key
        self._contact = contact
        self._contact_hosts = contact_hosts or AllowedOrigins(["*.push.apple.com"])
        self._clock = clock

    def find_problem(self, target: Mapping[str, Any]) -> Problem | None:
        try:
            endpoint = PushTarget.model_validate(target).endpoint
        except ValidationError:
            return Problem.INVALID_TARGET
        if self._http.find_problem(endpoint):
            return Problem.UNKNOWN_SERVICE
        if self._contact is None and self._contact_hosts.allows(parse_url(endpoint)[0]):
            return Problem.CONTACT_MISSING
        return None

    async def send(self, target: Mapping[str, Any], message: Notification) -> SendResult:
        if problem := self.find_problem(target):
            return SendResult(Outcome.PERMANENT, problem=problem)
        subscription = PushTarget.model_validate(target)
        headers = {
            "authorization": self._key.authorize(
                str(parse_url(subscription.endpoint)[0]), self._contact, self._clock()
            ),
            "content-encoding": "aes128gcm",
            "content-type": "application/octet-stream",
            "ttl": str(_SECONDS_TO_LIVE),
            "topic": message.key,
            "urgency": "high",
        }
        body = encrypt(
            render_payload(message),
            receiver=decode_base64url(subscription.keys.p256dh),
            auth=decode_base64url(subscription.keys.auth),
            sender=generate_private_key(SECP256R1()),
            salt=secrets.token_bytes(_SALT_BYTES),
        )
        return await self._http.post(subscription.endpoint, headers, body, _ANSWERS)


def create_push_channel(
    key: VapidKey,
    contact: str | None,
    *,
    hosts: Sequence[str] = PUSH_HOSTS,
    scheme: str = "https",
    port: int | None = None,
    **options: Any,
) -> PushChannel:
    return PushChannel(HttpSender(AllowedOrigins(hosts, scheme=scheme, port=port), **options), key, contact)


def render_payload(message: Notification) -> bytes:
    """Renders what the service worker reads; a long body is shortened, then the title."""
    message = message.clean()
    value = asdict(message)
    for field, least in (("body", 0), ("title", 20)):
        excess = len(_dump(value)) - MAX_PAYLOAD_BYTES
        while excess > 0 and len(value[field]) > least:
            # A character has at most six bytes as it is written here, so each step removes no more than is too much.
            value[field] = shorten(value[field], max(least, len(value[field]) - max(excess // 6, 1) - 1))
            excess = len(_dump(value)) - MAX_PAYLOAD_BYTES
    return _dump(value)


def _dump(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def encrypt(content: bytes, *, receiver: bytes, auth: bytes, sender: EllipticCurvePrivateKey, salt: bytes) -> bytes:
    """Encrypts for a subscription (RFC 8291), as one record of aes128gcm (RFC 8188).

    `receiver` and `auth` are the `p256dh` and `auth` of the subscription; `sender` and `salt` are used once.
    """
    shared = sender.exchange(ECDH(), EllipticCurvePublicKey.from_encoded_point(SECP256R1(), receiver))
    public = encode_point(sender)
    secret = _derive(shared, auth, b"WebPush: info\0" + receiver + public, 32)
    key = _derive(secret, salt, b"Content-Encoding: aes128gcm\0", 16)
    nonce = _derive(secret, salt, b"Content-Encoding: nonce\0", 12)
    header = salt + _RECORD_BYTES.to_bytes(4) + len(public).to_bytes(1) + public
    return header + AESGCM(key).encrypt(nonce, content + b"\x02", None)  # the delimiter of the last record


def _derive(secret: bytes, salt: bytes, info: bytes, length: int) -> bytes:
    return HKDF(algorithm=SHA256(), length=length, salt=salt, info=info).derive(secret)
