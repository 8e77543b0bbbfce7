"""Web Push, against a push service on loopback that checks signatures, decrypts and counts."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, derive_private_key

from backend.alerts.channels.channel import Outcome, Problem, SendResult
from backend.alerts.channels.push import (
    MAX_PAYLOAD_BYTES,
    PUSH_HOSTS,
    PushChannel,
    create_push_channel,
    encrypt,
    render_payload,
)
from backend.alerts.channels.table import CHANNELS
from backend.alerts.channels.targets import PushTarget, decode_base64url
from backend.alerts.channels.vapid import VapidKey, encode_base64url, load_vapid_key
from common.database import Database
from tests.channels.http_server import (
    Answer,
    announce,
    close,
    dribble,
    hang,
    reset,
    respond,
    send_endless_body,
    send_huge_headers,
    send_no_http,
    serve_http,
)
from tests.channels.messages import assert_not_logged, create_message
from tests.channels.push_service import Browser, PushService, serve_push

KEY = VapidKey.from_bytes(bytes(31) + b"\x07")
CONTACT = "mailto:owner@example.com"
NOW = datetime(2026, 11, 25, 12, tzinfo=UTC)
ACCEPTED = SendResult(Outcome.ACCEPTED)
LIMIT_SECONDS = 60  # of a test; each channel here has less than a second


@pytest.fixture
async def service() -> AsyncIterator[PushService]:
    async with serve_push() as service:
        yield service


@pytest.fixture
def channel(service: PushService) -> PushChannel:
    return create_loopback_channel(service.port)


def create_loopback_channel(port: int, *, seconds: float = LIMIT_SECONDS, contact: str | None = CONTACT) -> PushChannel:
    return create_push_channel(
        KEY, contact, hosts=("127.0.0.1",), scheme="http", port=port, seconds=seconds, clock=lambda: NOW
    )


def test_encryption_is_that_of_rfc_8291() -> None:
    """The example of its section 5."""
    body = encrypt(
        b"When I grow up, I want to be a watermelon",
        receiver=decode_base64url(
            "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4"
        ),
        auth=decode_base64url("BTBZMqHH6r4Tts7J_aSIgg"),
        sender=derive_private_key(
            int.from_bytes(decode_base64url("yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw")), SECP256R1()
        ),
        salt=decode_base64url("DGv6ra1nlYgDCS1FRnbzlw"),
    )
    assert encode_base64url(body) == (
        "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl"
        "7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN"
    )


async def test_browser_alone_can_read_the_message(service: PushService, channel: PushChannel) -> None:
    browser = service.subscribe(KEY.public)
    assert await channel.send(browser.subscription, create_message()) == ACCEPTED
    message = create_message()
    assert browser.shown == [
        {
            "key": message.key,
            "kind": "task",
            "title": message.title,
            "body": message.body,
            "url": message.url,
            "task": 7,
            "proof": message.proof,
            "late": False,
            "actions": True,
        }
    ]
    [request] = service.http.received
    assert request.headers["topic"] == message.key
    assert message.title.encode() not in request.body
    assert service.contacts == [CONTACT]


async def test_each_of_many_messages_arrives_once(service: PushService, channel: PushChannel) -> None:
    browsers = [service.subscribe(KEY.public) for _ in range(10)]
    keys = [f"key-{number}" for number in range(200)]
    sending = (
        channel.send(browsers[number % 10].subscription, create_message(key=key)) for number, key in enumerate(keys)
    )
    assert {*await asyncio.gather(*sending)} == {ACCEPTED}
    assert service.count == dict.fromkeys(keys, 1)
    assert sorted(message["key"] for browser in browsers for message in browser.shown) == sorted(keys)


async def test_subscription_made_with_another_key_is_rejected(service: PushService, channel: PushChannel) -> None:
    browser = service.subscribe(VapidKey.from_bytes(bytes(31) + b"\x08").public)
    result = await channel.send(browser.subscription, create_message())
    assert result == SendResult(Outcome.PERMANENT, problem=Problem.SIGNATURE)
    assert browser.shown == []


ANSWERS = {
    "200": (respond(200), ACCEPTED),
    "201": (respond(201), ACCEPTED),
    "202": (respond(202), ACCEPTED),
    "204": (respond(204), ACCEPTED),
    "redirect": (respond(307, "location: /"), SendResult(Outcome.PERMANENT, problem=Problem.REDIRECTED)),
    "400": (respond(400), SendResult(Outcome.PERMANENT, problem=Problem.REJECTED)),
    "401": (respond(401), SendResult(Outcome.RETRY, problem=Problem.SIGNATURE)),
    "403": (respond(403), SendResult(Outcome.PERMANENT, problem=Problem.SIGNATURE)),
    "404": (respond(404), SendResult(Outcome.PERMANENT, problem=Problem.ENDED)),
    "410": (respond(410), SendResult(Outcome.PERMANENT, problem=Problem.ENDED)),
    "413": (respond(413), SendResult(Outcome.PERMANENT, problem=Problem.TOO_LARGE)),
    "429": (respond(429), SendResult(Outcome.RETRY, problem=Problem.BUSY)),
    "429 in seconds": (respond(429, "retry-after: 120"), SendResult(Outcome.RETRY, 120.0, Problem.BUSY)),
    "429 in a year": (respond(429, "retry-after: 31536000"), SendResult(Outcome.RETRY, 43_200.0, Problem.BUSY)),
    "429 at a date": (
        respond(429, f"retry-after: {format_datetime(NOW + timedelta(seconds=90), usegmt=True)}"),
        SendResult(Outcome.RETRY, 90.0, Problem.BUSY),
    ),
    "429 at a past date": (
        respond(429, f"retry-after: {format_datetime(NOW - timedelta(days=1), usegmt=True)}"),
        SendResult(Outcome.RETRY, 0.0, Problem.BUSY),
    ),
    "429 with nonsense": (respond(429, "retry-after: soon"), SendResult(Outcome.RETRY, problem=Problem.BUSY)),
    "429 with -1": (respond(429, "retry-after: -1"), SendResult(Outcome.RETRY, problem=Problem.BUSY)),
    "500": (respond(500), SendResult(Outcome.RETRY, problem=Problem.SERVER_ERROR)),
    "503": (respond(503, "retry-after: 7"), SendResult(Outcome.RETRY, 7.0, Problem.SERVER_ERROR)),
    "no status": (respond(999), SendResult(Outcome.RETRY, problem=Problem.SERVER_ERROR)),
    "reset": (reset, SendResult(Outcome.UNKNOWN, problem=Problem.INTERRUPTED)),
    "closed": (close, SendResult(Outcome.UNKNOWN, problem=Problem.INTERRUPTED)),
    "huge headers": (send_huge_headers, SendResult(Outcome.UNKNOWN, problem=Problem.INTERRUPTED)),
    "no HTTP": (send_no_http, SendResult(Outcome.UNKNOWN, problem=Problem.INTERRUPTED)),
    "endless body": (send_endless_body, ACCEPTED),
}


@pytest.mark.parametrize(("answer", "expected"), ANSWERS.values(), ids=ANSWERS)
async def test_answer(service: PushService, channel: PushChannel, answer: Answer, expected: SendResult) -> None:
    browser = service.subscribe(KEY.public, answer)
    async with asyncio.timeout(LIMIT_SECONDS):
        assert await channel.send(browser.subscription, create_message()) == expected
    assert len(service.http.received) == 1


@pytest.mark.parametrize("answer", [hang, dribble, announce])
async def test_service_that_does_not_answer_in_time(service: PushService, answer: Answer) -> None:
    browser = service.subscribe(KEY.public, answer)
    channel = create_loopback_channel(service.port, seconds=0.5)
    async with asyncio.timeout(LIMIT_SECONDS):
        result = await channel.send(browser.subscription, create_message())
    assert result == SendResult(Outcome.UNKNOWN, problem=Problem.TIMEOUT)
    assert len(service.http.received) == 1


async def test_service_that_cannot_be_reached_got_nothing() -> None:
    async with serve_http() as server:
        port = server.port
    result = await create_loopback_channel(port).send(
        Browser(f"http://127.0.0.1:{port}/a", KEY.public).subscription, create_message()
    )
    assert result == SendResult(Outcome.RETRY, problem=Problem.UNREACHABLE)


async def test_redirects_are_not_followed(service: PushService, channel: PushChannel) -> None:
    async with serve_http() as other:
        for status in (301, 302, 303, 307, 308):
            browser = service.subscribe(KEY.public, respond(status, f"location: {other.origin}/{status}"))
            result = await channel.send(browser.subscription, create_message())
            assert result == SendResult(Outcome.PERMANENT, problem=Problem.REDIRECTED)
        assert other.received == []


@pytest.mark.parametrize(
    "endpoint",
    [
        "https://fcm.googleapis.com/fcm/send/abc",
        "https://FCM.googleapis.com:443/fcm/send/abc",
        "https://fcm.googleapis.com./fcm/send/abc",
        "https://updates.push.services.mozilla.com/wpush/v2/abc",
        "https://web.push.apple.com/abc",
        "https://wns2-am3p.notify.windows.com/w/?token=abc",
    ],
)
def test_known_push_services_are_accepted(endpoint: str) -> None:
    channel = create_push_channel(KEY, CONTACT)
    assert channel.find_problem(Browser(endpoint, KEY.public).subscription) is None


@pytest.mark.parametrize(
    "endpoint",
    [
        "http://fcm.googleapis.com/fcm/send/abc",
        "https://fcm.googleapis.com:8443/fcm/send/abc",
        "https://fcm.googleapis.com:80/fcm/send/abc",
        "https://push.example/abc",
        "https://push.apple.com/abc",  # only hosts below it
        "https://evilpush.apple.com.example/abc",
        "https://xpush.apple.com/abc",
        "https://fcm.googleapis.com.example/abc",
        "https://example/fcm.googleapis.com",
        "https://fcm.googleapis.com@example/abc",
        "https://user:password@fcm.googleapis.com/abc",
        "https://example\\@fcm.googleapis.com/abc",
        "https://fcm.googleapis.com\n.example/abc",
        "https://fcm.googleapis.com%2eexample/abc",
        "https://fcm\u3002googleapis\u3002com\u3002example/abc",
        "https://\uff46cm.googleapis.com/abc",
        "https://127.0.0.1/abc",
        "https://2130706433/abc",
        "https://[::1]/abc",
        "https://localhost/abc",
        "https://169.254.169.254/latest/meta-data",
        "ftp://fcm.googleapis.com/abc",
        "file:///etc/passwd",
        "//fcm.googleapis.com/abc",
        "fcm.googleapis.com/abc",
        "https:fcm.googleapis.com",
        "",
        f"https://fcm.googleapis.com/{'x' * 3_000}",
    ],
)
async def test_other_endpoints_are_rejected_and_get_nothing(endpoint: str) -> None:
    channel = create_push_channel(KEY, CONTACT, resolve=fail_to_resolve)
    target = Browser(endpoint, KEY.public).subscription
    assert channel.find_problem(target) in (Problem.UNKNOWN_SERVICE, Problem.INVALID_TARGET)
    assert (await channel.send(target, create_message())).outcome is Outcome.PERMANENT


async def fail_to_resolve(host: str, port: int) -> list[str]:
    raise AssertionError(f"{host}:{port} was looked up")


def test_apple_needs_a_contact_and_others_do_not() -> None:
    channel = create_push_channel(KEY, None)
    apple = Browser("https://web.push.apple.com/abc", KEY.public).subscription
    google = Browser("https://fcm.googleapis.com/fcm/send/abc", KEY.public).subscription
    assert (channel.find_problem(apple), channel.find_problem(google)) == (Problem.CONTACT_MISSING, None)


async def test_without_a_contact_the_signature_names_none(service: PushService) -> None:
    browser = service.subscribe(KEY.public)
    channel = create_loopback_channel(service.port, contact=None)
    assert await channel.send(browser.subscription, create_message()) == ACCEPTED
    assert service.contacts == [None]


@pytest.mark.parametrize(
    "change",
    [
        {"keys": None},
        {"keys": {"p256dh": "", "auth": ""}},
        {"keys": {"p256dh": encode_base64url(b"\x04" + bytes(64)), "auth": encode_base64url(bytes(16))}},
        {"keys": {"p256dh": KEY.public, "auth": encode_base64url(bytes(15))}},
        {"keys": {"p256dh": KEY.public[:-1] + "!", "auth": encode_base64url(bytes(16))}},
        {"keys": {"p256dh": KEY.public}},
        {"endpoint": 7},
        {"endpoint": None},
    ],
)
async def test_invalid_subscription_is_permanent(
    service: PushService, channel: PushChannel, change: dict[str, Any]
) -> None:
    target = {**service.subscribe(KEY.public).subscription, **change}
    assert channel.find_problem(target) is Problem.INVALID_TARGET
    result = await channel.send(target, create_message())
    assert result == SendResult(Outcome.PERMANENT, problem=Problem.INVALID_TARGET)
    assert service.http.received == []


LONG = {
    "200 letters": "x" * 200,
    "200 emoji": "🥳" * 200,
    "emoji of several characters": "👩🏽‍💻" * 50,
    "quotes": '"\\' * 100,
    "Arabic": "مرحبا " * 33,
    "bidi controls": "\u202egnp.exe\u202c\u2066\u2067\u2069" * 10,
    "tags and zeros": "a\u200b\u2060\ufeff\U000e0041\0b" * 25,
    "lone surrogates": "\ud800" * 100,
    "line breaks": "a\r\nb\u2028c\u2029d\x85e",
}


@pytest.mark.parametrize("title", LONG.values(), ids=LONG)
@pytest.mark.parametrize("body", [str.upper, lambda title: title * 40], ids=["short", "long"])
async def test_any_title_fits_and_hides_nothing(
    service: PushService, channel: PushChannel, title: str, body: Callable[[str], str]
) -> None:
    browser = service.subscribe(KEY.public)
    message = create_message(title=title, body=body(title))
    assert len(render_payload(message)) <= MAX_PAYLOAD_BYTES < 3_993
    assert await channel.send(browser.subscription, message) == ACCEPTED
    [shown] = browser.shown
    assert not {*shown["title"]} & {*"\r\n\u2028\u2029\x85\0\u202e\u2066\u2067\u200b\ufeff\U000e0041"}
    assert not {*shown["body"]} & {*"\r\0\u202e\u2066\u2067\u200b\ufeff\U000e0041"}
    assert len(service.http.received[0].body) <= 4_096


def test_body_is_shortened_before_the_title() -> None:
    title = "🥳" * 200
    payload = json.loads(render_payload(create_message(title=title, body="ж" * 4_000)))
    assert payload["title"] == title
    assert payload["body"].endswith("…")
    assert len(payload["body"]) > 1_000


async def test_nothing_that_is_secret_is_logged(
    service: PushService, channel: PushChannel, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    for answer in (None, respond(403), respond(500), reset, send_no_http):
        browser = service.subscribe(KEY.public, answer)
        await channel.send(browser.subscription, create_message())
        keys = browser.subscription["keys"]
        assert_not_logged(caplog, browser.subscription["endpoint"], keys["auth"], keys["p256dh"], "vapid t=")


async def test_processes_that_start_together_get_one_key(database_url: str) -> None:
    async with Database(database_url) as database:
        keys = await asyncio.gather(*(load_vapid_key(database) for _ in range(8)))
        keys.append(await load_vapid_key(database))
    assert len({key.public for key in keys}) == 1
    assert len(decode_base64url(keys[0].public)) == 65


@pytest.mark.parametrize("host", PUSH_HOSTS)
def test_users_see_which_service_it_is_and_not_the_endpoint(host: str) -> None:
    subscription = Browser(f"https://{host.replace('*', 'a')}/secret-path", KEY.public).subscription
    description = CHANNELS["push"].describe(subscription)
    assert description.endswith("'s push service")
    assert "secret" not in repr(PushTarget.model_validate(subscription))
