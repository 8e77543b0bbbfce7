"""Sign-ins that were begun, and are not finished: the browser keeps them, sealed, in a cookie."""

import base64
import binascii
import hmac
import json
import secrets
import time
from dataclasses import asdict, dataclass

from backend.accounts.oidc.sealing import Sealer

SECONDS = 600
"""How long a user may take to sign in at the provider."""
_MOST = 3  # at once, such as in several tabs
_MAX_COOKIE_LENGTH = 4_000
_PURPOSE = "sign-in transactions"


@dataclass(frozen=True, slots=True)
class SignInTransaction:
    state: str
    nonce: str
    verifier: str
    """Of PKCE."""
    return_to: str
    """The path of the page to go on with."""
    expires: float
    """Unix time."""


def begin_transaction(return_to: str) -> SignInTransaction:
    make = secrets.token_urlsafe
    return SignInTransaction(make(24), make(24), make(48), return_to, time.time() + SECONDS)


def write_cookie(transactions: list[SignInTransaction], sealer: Sealer) -> str:
    """Returns the value of the cookie with the newest transactions, as many as browsers store."""
    for oldest in range(max(0, len(transactions) - _MOST), len(transactions)):
        content = json.dumps([asdict(each) for each in transactions[oldest:]])
        value = base64.urlsafe_b64encode(sealer.seal(content.encode(), _PURPOSE)).decode()
        if len(value) <= _MAX_COOKIE_LENGTH:
            return value
    return ""


def read_cookie(value: str, sealer: Sealer) -> list[SignInTransaction]:
    """Returns the transactions of a cookie that have not expired; none if it is not ours."""
    if len(value) > _MAX_COOKIE_LENGTH:
        return []
    try:
        content = sealer.open(base64.urlsafe_b64decode(value.encode()), _PURPOSE)
    except (binascii.Error, ValueError):
        return []
    found = [SignInTransaction(**each) for each in json.loads(content)] if content is not None else []
    return [each for each in found if each.expires > time.time()]


def take(transactions: list[SignInTransaction], state: str) -> tuple[SignInTransaction | None, list[SignInTransaction]]:
    """Returns the transaction with a state, and the other ones."""
    sent = state.encode(errors="surrogatepass")
    for each in transactions:
        if hmac.compare_digest(each.state.encode(), sent):
            return each, [other for other in transactions if other is not each]
    return None, transactions
