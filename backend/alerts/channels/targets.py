"""Where a channel sends to: one model for each kind, checked when a user adds it and before each message."""

import base64
import binascii
from typing import Annotated, Any, ClassVar

from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePublicKey
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from common.mail import is_email_address
from common.text import is_storable
from common.web_origins import parse_url

_MAX_URL_CHARS = 2_048
_PUBLIC_KEY_BYTES, _AUTH_BYTES = 65, 16
_PUSH_SERVICES = {
    "fcm.googleapis.com": "Google's push service",
    "updates.push.services.mozilla.com": "Mozilla's push service",
    "push.apple.com": "Apple's push service",
    "notify.windows.com": "Microsoft's push service",
}


def decode_base64url(text: str) -> bytes:
    """Decodes base64url with or without padding; raises `ValueError`."""
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except binascii.Error as error:
        raise ValueError("this is not base64url") from error


def _check_url(url: str) -> str:
    return parse_url(url)[1]


def _check_server(url: str) -> str:
    origin, normal = parse_url(url)
    if normal.removesuffix("/") != str(origin):
        raise ValueError("ntfy is at the root of its server")
    return normal


def _check_public_key(key: str) -> str:
    point = decode_base64url(key)
    if len(point) != _PUBLIC_KEY_BYTES:
        raise ValueError("this is no P-256 key")
    EllipticCurvePublicKey.from_encoded_point(SECP256R1(), point)
    return key


def _check_auth(secret: str) -> str:
    if len(decode_base64url(secret)) != _AUTH_BYTES:
        raise ValueError("this is no secret of a subscription")
    return secret


def _check_visible_ascii(text: str) -> str:
    if not text.isascii() or not text.isprintable() or " " in text:
        raise ValueError("only visible ASCII characters")
    return text


def _check_storable(text: str) -> str:
    if not is_storable(text):
        raise ValueError("no control characters")
    return text


def _check_email(address: str) -> str:
    if not is_email_address(address):
        raise ValueError("this is no e-mail address")
    return address


_Token = Annotated[str, Field(min_length=1, max_length=500), AfterValidator(_check_visible_ascii)]
_Url = Annotated[str, Field(max_length=_MAX_URL_CHARS), AfterValidator(_check_url)]


class Target(BaseModel):
    """`invalid` is the sentence for the user about a target that cannot be read."""

    model_config = ConfigDict(extra="ignore", frozen=True, hide_input_in_errors=True)

    invalid: ClassVar[str]

    def describe(self) -> str:
        """Returns what users see of the target, without what is secret."""
        raise NotImplementedError

    def dump(self) -> dict[str, Any]:
        """Returns what is stored."""
        return self.model_dump(mode="json", exclude_none=True)


class PushKeys(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True, hide_input_in_errors=True)

    p256dh: Annotated[str, Field(max_length=100, repr=False), AfterValidator(_check_public_key)]
    auth: Annotated[str, Field(max_length=32, repr=False), AfterValidator(_check_auth)]


class PushTarget(Target):
    """What `PushSubscription.toJSON()` of a browser returns."""

    invalid = "This is not a push subscription of a browser. Reload the page and turn notifications on again."

    endpoint: Annotated[_Url, Field(repr=False)]
    keys: PushKeys

    def describe(self) -> str:
        host = parse_url(self.endpoint)[0].host
        return next((name for known, name in _PUSH_SERVICES.items() if f".{host}".endswith(f".{known}")), host)


class NtfyTarget(Target):
    """A topic of a server of ntfy; whoever knows the name of a topic of a public server can read it."""

    invalid = (
        "This is not a topic of ntfy. Enter the server, such as https://ntfy.sh, and a topic of letters, digits, "
        "hyphens and underscores."
    )

    server: Annotated[str, Field(max_length=_MAX_URL_CHARS), AfterValidator(_check_server)]
    topic: str = Field(pattern=r"\A[A-Za-z0-9_-]{1,64}\z", repr=False)
    token: _Token | None = Field(default=None, repr=False)

    def describe(self) -> str:
        return str(parse_url(self.server)[0])


class WebhookTarget(Target):
    invalid = "This is not a webhook. Enter an address, https://…, and a secret of 16 to 200 characters."

    url: Annotated[_Url, Field(repr=False)]
    secret: Annotated[str, Field(min_length=16, max_length=200, repr=False), AfterValidator(_check_storable)]

    def describe(self) -> str:
        return str(parse_url(self.url)[0])


class EmailTarget(Target):
    invalid = "This is not an e-mail address. Enter one such as name@example.com."

    address: Annotated[str, AfterValidator(_check_email)]

    def describe(self) -> str:
        return self.address
