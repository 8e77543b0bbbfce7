"""ntfy: notifications by its JSON API (https://docs.ntfy.sh/publish/#publish-as-json)."""

import json
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from backend.alerts.channels.channel import Notification, Outcome, Problem, SendResult
from backend.alerts.channels.http import HttpSender
from backend.alerts.channels.targets import NtfyTarget

_MAX_MESSAGE_BYTES = 4_000  # a message of more than 4,096 bytes would become an attachment
_ANSWERS = {
    401: (Outcome.PERMANENT, Problem.LOGIN),
    403: (Outcome.PERMANENT, Problem.LOGIN),
    404: (Outcome.RETRY, Problem.REJECTED),  # what proxies answer while the server behind them starts
}


class NtfyChannel:
    def __init__(self, http: HttpSender) -> None:
        self._http = http

    def find_problem(self, target: Mapping[str, Any]) -> Problem | None:
        try:
            return self._http.find_problem(NtfyTarget.model_validate(target).server)
        except ValidationError:
            return Problem.INVALID_TARGET

    async def send(self, target: Mapping[str, Any], message: Notification) -> SendResult:
        if problem := self.find_problem(target):
            return SendResult(Outcome.PERMANENT, problem=problem)
        topic = NtfyTarget.model_validate(target)
        headers = {"content-type": "application/json", "idempotency-key": message.key}
        if topic.token is not None:
            headers["authorization"] = f"Bearer {topic.token}"
        return await self._http.post(topic.server, headers, _render(topic.topic, message), _ANSWERS)


def _render(topic: str, message: Notification) -> bytes:
    message = message.clean()
    text = (message.body or message.title).encode()[:_MAX_MESSAGE_BYTES].decode(errors="ignore")
    value = {"topic": topic, "title": message.title, "message": text, "click": message.url}
    return json.dumps(value, ensure_ascii=False).encode()
