"""Webhooks, against a receiver that verifies them as Standard Webhooks describes."""

import base64
import hashlib
import hmac
import json
import logging
import re
import time
from collections.abc import AsyncIterator

import pytest

from backend.alerts.channels.channel import Outcome, Problem, SendResult
from backend.alerts.channels.http import HttpSender
from backend.alerts.channels.webhook import WebhookChannel
from common.web_origins import AllowedOrigins
from tests.channels.http_server import Answer, HttpServer, Received, reset, respond, serve_http
from tests.channels.messages import BODY, TITLE, URL, assert_not_logged, create_message
from tests.conftest import ROOT

SECRET = "sécret of a webhook"
KEY_BYTES = bytes(range(24))
ACCEPTED = SendResult(Outcome.ACCEPTED)


@pytest.fixture
async def server() -> AsyncIterator[HttpServer]:
    async with serve_http() as server:
        yield server


@pytest.fixture
def channel(server: HttpServer) -> WebhookChannel:
    return WebhookChannel(HttpSender(AllowedOrigins([server.origin])))


def verify(request: Received, key: bytes) -> bool:
    headers = request.headers
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + request.body
    expected = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    is_recent = abs(time.time() - int(headers["webhook-timestamp"])) < 300
    return is_recent and any(
        version == "v1" and hmac.compare_digest(signature, expected)
        for version, _, signature in (part.partition(",") for part in headers["webhook-signature"].split(" "))
    )


@pytest.mark.parametrize(
    ("secret", "key"),
    [
        (SECRET, SECRET.encode()),
        (f"whsec_{base64.b64encode(KEY_BYTES).decode()}", KEY_BYTES),
        ("whsec_this is no base64", b"whsec_this is no base64"),
    ],
)
async def test_receiver_can_verify_it(server: HttpServer, channel: WebhookChannel, secret: str, key: bytes) -> None:
    assert await channel.send({"url": f"{server.origin}/hook?a=b", "secret": secret}, create_message()) == ACCEPTED
    [request] = server.received
    assert (request.method, request.path, request.headers["content-type"]) == (
        "POST",
        "/hook?a=b",
        "application/json",
    )
    assert verify(request, key)
    assert not verify(request, b"another secret, of others")
    changed = Received(request.method, request.path, request.headers, request.body.replace(b"Call", b"Kill"))
    assert not verify(changed, key)


async def test_document_shows_the_body_and_how_to_verify_it(server: HttpServer, channel: WebhookChannel) -> None:
    document = (ROOT / "docs" / "notification-channels.md").read_text()
    [shown] = re.findall(r"```json\n(.*?)```", document, re.DOTALL)
    [program] = re.findall(r"```python\n(.*?)```", document, re.DOTALL)
    await channel.send({"url": server.origin, "secret": SECRET}, create_message())
    [request] = server.received
    assert {name: type(value) for name, value in json.loads(shown).items()} == {
        name: type(value) for name, value in json.loads(request.body).items()
    }
    names = {"base64": base64, "hmac": hmac, "headers": request.headers, "body": request.body}
    verdicts = list[bool]()
    for secret in (SECRET, "another secret, of others"):
        exec(program, names := {**names, "secret": secret})
        verdicts.append(names["is_ours"])
    assert verdicts == [True, False]


async def test_body_and_key(server: HttpServer, channel: WebhookChannel) -> None:
    message = create_message(late=True)
    for _ in range(2):
        await channel.send({"url": server.origin, "secret": SECRET}, message)
    first, second = server.received
    assert json.loads(first.body) == {
        **{"title": TITLE, "body": BODY, "url": URL, "task": 7},
        **{"key": message.key, "kind": "task", "late": True},
    }
    assert {request.headers["idempotency-key"] for request in (first, second)} == {message.key}


async def test_proof_of_devices_is_not_sent(server: HttpServer, channel: WebhookChannel) -> None:
    await channel.send({"url": server.origin, "secret": SECRET}, create_message(proof="c2VjcmV0IHByb29m"))
    assert b"c2VjcmV0" not in server.received[0].body


ANSWERS = {
    "204": (respond(204), ACCEPTED),
    "401": (respond(401), SendResult(Outcome.PERMANENT, problem=Problem.REJECTED)),
    "404": (respond(404), SendResult(Outcome.RETRY, problem=Problem.REJECTED)),
    "410": (respond(410), SendResult(Outcome.PERMANENT, problem=Problem.REJECTED)),
    "413": (respond(413), SendResult(Outcome.PERMANENT, problem=Problem.TOO_LARGE)),
    "429": (respond(429, "retry-after: 30"), SendResult(Outcome.RETRY, 30.0, Problem.BUSY)),
    "502": (respond(502), SendResult(Outcome.RETRY, problem=Problem.SERVER_ERROR)),
    "redirect": (respond(302, "location: /other"), SendResult(Outcome.PERMANENT, problem=Problem.REDIRECTED)),
    "reset": (reset, SendResult(Outcome.UNKNOWN, problem=Problem.INTERRUPTED)),
}


@pytest.mark.parametrize(("answer", "expected"), ANSWERS.values(), ids=ANSWERS)
async def test_answer(server: HttpServer, channel: WebhookChannel, answer: Answer, expected: SendResult) -> None:
    server.answer = answer
    assert await channel.send({"url": server.origin, "secret": SECRET}, create_message()) == expected
    assert len(server.received) == 1


@pytest.mark.parametrize(
    "change", [{"secret": "short"}, {"secret": None}, {"secret": "x\n" * 10}, {"url": "x"}, {"url": 1}]
)
async def test_invalid_target_is_permanent(
    server: HttpServer, channel: WebhookChannel, change: dict[str, object]
) -> None:
    result = await channel.send({"url": server.origin, "secret": SECRET, **change}, create_message())
    assert result == SendResult(Outcome.PERMANENT, problem=Problem.INVALID_TARGET)
    assert server.received == []


async def test_nothing_that_is_secret_is_logged(
    server: HttpServer, channel: WebhookChannel, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    for answer in (respond(200), respond(500), reset):
        server.answer = answer
        await channel.send({"url": f"{server.origin}/private-path", "secret": SECRET}, create_message())
    assert_not_logged(caplog, "private-path", SECRET)
