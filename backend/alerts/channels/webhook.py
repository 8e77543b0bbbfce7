"""Webhooks: JSON that is signed as Standard Webhooks describes (https://www.standardwebhooks.com)."""

import base64
import hashlib
import hmac
import json
from binascii import Error as NotBase64
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from pydantic import ValidationError

from backend.alerts.channels.channel import Notification, Outcome, Problem, SendResult
from backend.alerts.channels.http import HttpSender
from backend.alerts.channels.targets import WebhookTarget
from common.clock import Clock, utc_now

_PREFIX = "whsec_"  # of a secret in base64
_ANSWERS = {404: (Outcome.RETRY, Problem.REJECTED)}  # what proxies answer while the server behind them starts


class WebhookChannel:
    def __init__(self, http: HttpSender, *, clock: Clock = utc_now) -> None:
        self._http = http
        self._clock = clock

    def find_problem(self, target: Mapping[str, Any]) -> Problem | None:
        try:
            return self._http.find_problem(WebhookTarget.model_validate(target).url)
        except ValidationError:
            return Problem.INVALID_TARGET

    async def send(self, target: Mapping[str, Any], message: Notification) -> SendResult:
        if problem := self.find_problem(target):
            return SendResult(Outcome.PERMANENT, problem=problem)
        webhook = WebhookTarget.model_validate(target)
        body = _render(message)
        headers = {"content-type": "application/json", **sign(webhook.secret, message.key, self._clock(), body)}
        return await self._http.post(webhook.url, headers, body, _ANSWERS)


def _render(message: Notification) -> bytes:
    message = message.clean()
    value = {"title": message.title, "body": message.body, "url": message.url, "task": message.task}
    return json.dumps(value | {"key": message.key, "kind": message.kind, "late": message.late}).encode()


def sign(secret: str, key: str, now: datetime, body: bytes) -> dict[str, str]:
    """Returns the headers by which a receiver knows who sent a body, when, and whether it came before."""
    timestamp = str(int(now.timestamp()))
    signed = b".".join((key.encode(), timestamp.encode(), body))
    signature = base64.b64encode(hmac.digest(_read_secret(secret), signed, hashlib.sha256)).decode()
    return {
        "idempotency-key": key,
        "webhook-id": key,
        "webhook-timestamp": timestamp,
        "webhook-signature": f"v1,{signature}",
    }


def _read_secret(secret: str) -> bytes:
    if secret.startswith(_PREFIX):
        try:
            return base64.b64decode(secret.removeprefix(_PREFIX), validate=True)
        except NotBase64:
            pass
    return secret.encode()
