"""ntfy, against a stub with its JSON API (https://docs.ntfy.sh/publish/#publish-as-json)."""

import asyncio
import json
import logging
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from backend.alerts.channels.channel import Outcome, Problem, SendResult
from backend.alerts.channels.http import HttpSender
from backend.alerts.channels.ntfy import NtfyChannel
from common.web_origins import AllowedOrigins
from tests.channels.http_server import Answer, HttpServer, Received, hang, reset, respond, serve_http
from tests.channels.messages import BODY, TITLE, URL, assert_not_logged, create_message

TOPIC, TOKEN = "todo-Yk3x", "tk_AgQdq7mVBoFD37zQVN29RhuMzNIz2"
ACCEPTED = SendResult(Outcome.ACCEPTED)
MAX_MESSAGE_BYTES = 4_096


@dataclass
class Ntfy:
    """Publishes JSON that is sent to its root, as `readJSON` and `handlePublish` of ntfy do."""

    http: HttpServer
    token: str | None = None
    published: list[dict[str, Any]] = field(default_factory=list)
    attachments: int = 0

    async def handle(self, request: Received, writer: asyncio.StreamWriter) -> None:
        if (request.method, request.path) != ("POST", "/"):
            return await respond(404)(request, writer)
        if self.token is not None and request.headers.get("authorization") != f"Bearer {self.token}":
            return await respond(403)(request, writer)
        value = json.loads(request.body)
        if not re.fullmatch("[-_A-Za-z0-9]{1,64}", value["topic"]):
            return await respond(400)(request, writer)
        message = value.get("message") or "triggered"
        self.attachments += len(message.encode()) > MAX_MESSAGE_BYTES
        self.published.append({**value, "message": message})
        return await respond(200, body=b'{"id":"sPs71M8A2T","event":"message"}')(request, writer)


@pytest.fixture
async def ntfy() -> AsyncIterator[Ntfy]:
    async with serve_http() as http:
        ntfy = Ntfy(http)
        http.answer = ntfy.handle
        yield ntfy


@pytest.fixture
def channel(ntfy: Ntfy) -> NtfyChannel:
    return NtfyChannel(HttpSender(AllowedOrigins([ntfy.http.origin]), seconds=1))


def target(ntfy: Ntfy, **changes: Any) -> dict[str, Any]:
    return {"server": ntfy.http.origin, "topic": TOPIC, **changes}


async def test_message_is_published(ntfy: Ntfy, channel: NtfyChannel) -> None:
    assert await channel.send(target(ntfy), create_message()) == ACCEPTED
    assert ntfy.published == [{"topic": TOPIC, "title": TITLE, "message": BODY, "click": URL}]
    assert ntfy.http.received[0].headers["idempotency-key"] == create_message().key


@pytest.mark.parametrize("address", ["/", ""])
async def test_slash_at_the_end_of_the_server_changes_nothing(ntfy: Ntfy, channel: NtfyChannel, address: str) -> None:
    assert await channel.send(target(ntfy, server=ntfy.http.origin + address), create_message()) == ACCEPTED


async def test_token_is_sent(ntfy: Ntfy, channel: NtfyChannel) -> None:
    ntfy.token = TOKEN
    assert await channel.send(target(ntfy, token=TOKEN), create_message()) == ACCEPTED
    for wrong in (target(ntfy), target(ntfy, token="tk_other")):
        rejected = await channel.send(wrong, create_message())
        assert rejected == SendResult(Outcome.PERMANENT, problem=Problem.LOGIN)


async def test_without_a_body_the_title_is_the_message(ntfy: Ntfy, channel: NtfyChannel) -> None:
    await channel.send(target(ntfy), create_message(body=""))
    assert ntfy.published[0]["message"] == TITLE


@pytest.mark.parametrize("text", ["🥳", "ж", '"', "\u202e", "x\n"])
async def test_long_message_is_no_attachment(ntfy: Ntfy, channel: NtfyChannel, text: str) -> None:
    assert await channel.send(target(ntfy), create_message(title=text * 200, body=text * 5_000)) == ACCEPTED
    assert (len(ntfy.published), ntfy.attachments) == (1, 0)
    assert "\ufffd" not in ntfy.published[0]["message"]


ANSWERS = {
    "404": (respond(404), SendResult(Outcome.RETRY, problem=Problem.REJECTED)),
    "413": (respond(413), SendResult(Outcome.PERMANENT, problem=Problem.TOO_LARGE)),
    "429": (respond(429, "retry-after: 60"), SendResult(Outcome.RETRY, 60.0, Problem.BUSY)),
    "500": (respond(500), SendResult(Outcome.RETRY, problem=Problem.SERVER_ERROR)),
    "507": (respond(507), SendResult(Outcome.RETRY, problem=Problem.SERVER_ERROR)),
    "reset": (reset, SendResult(Outcome.UNKNOWN, problem=Problem.INTERRUPTED)),
    "no answer": (hang, SendResult(Outcome.UNKNOWN, problem=Problem.TIMEOUT)),
}


@pytest.mark.parametrize(("answer", "expected"), ANSWERS.values(), ids=ANSWERS)
async def test_answer(ntfy: Ntfy, channel: NtfyChannel, answer: Answer, expected: SendResult) -> None:
    ntfy.http.answer = answer
    assert await channel.send(target(ntfy), create_message()) == expected
    assert len(ntfy.http.received) == 1


@pytest.mark.parametrize(
    "change",
    [
        *({"topic": topic} for topic in ("", "a/b", "a b", "ä", "x" * 65, "a\n", "../a", 7, None)),
        *({"token": token} for token in ("", "a b", "a\r\nx: y", "ä", 7)),
        {"server": "ntfy"},
        {"server": None},
    ],
)
async def test_invalid_target_is_permanent(ntfy: Ntfy, channel: NtfyChannel, change: dict[str, Any]) -> None:
    result = await channel.send(target(ntfy, **change), create_message())
    assert result == SendResult(Outcome.PERMANENT, problem=Problem.INVALID_TARGET)
    assert ntfy.http.received == []


async def test_server_with_a_path_is_no_server_of_ntfy(ntfy: Ntfy, channel: NtfyChannel) -> None:
    problem = channel.find_problem(target(ntfy, server=f"{ntfy.http.origin}/{TOPIC}"))
    assert problem is Problem.INVALID_TARGET


async def test_nothing_that_is_secret_is_logged(
    ntfy: Ntfy, channel: NtfyChannel, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    for answer in (respond(200), respond(403), respond(500), reset):
        ntfy.http.answer = answer
        await channel.send(target(ntfy, token=TOKEN), create_message())
    assert_not_logged(caplog, TOPIC, TOKEN)
