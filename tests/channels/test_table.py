"""What users can add, given what the operator has set."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from backend.alerts.channels.channel import PROBLEMS, Outcome, Problem, SendResult
from backend.alerts.channels.table import CHANNELS, InvalidChannel, create_channels, read_target
from backend.alerts.channels.vapid import VapidKey
from backend.settings import ChannelSettings
from common.environment import SettingsInvalid, read_settings
from tests.channels.push_service import Browser

KEY = VapidKey.from_bytes(bytes(31) + b"\x07")
ALL = {
    "ALERT_HOSTS": "ntfy.sh, http://192.168.1.5:8080",
    "SMTP_URL": "smtps://ann:secret@mail.example",
    "SMTP_FROM": "To-dos <todo@example.com>",
    "SMTP_RECIPIENTS": "@example.com",
}
SUBSCRIPTION = Browser("https://fcm.googleapis.com/fcm/send/secret-endpoint", KEY.public).subscription
TARGETS: Mapping[str, tuple[dict[str, Any], str]] = {
    "push": (SUBSCRIPTION, "Google's push service"),
    "ntfy": ({"server": "https://NTFY.sh", "topic": "secret-topic", "token": "tk_secret"}, "https://ntfy.sh"),
    "webhook": (
        {"url": "http://192.168.1.5:8080/secret-path?secret=1", "secret": "a secret of 16 b"},
        "http://192.168.1.5:8080",
    ),
    "email": ({"address": "ann@example.com"}, "ann@example.com"),
}


@pytest.fixture
def settings(monkeypatch: pytest.MonkeyPatch) -> ChannelSettings:
    return read(monkeypatch, **ALL)


def read(monkeypatch: pytest.MonkeyPatch, **values: str) -> ChannelSettings:
    for name in (*ALL, "ALERT_CONTACT", "BACKEND_URL"):
        monkeypatch.delenv(name, raising=False)
    for name, value in values.items():
        monkeypatch.setenv(name, value)
    return read_settings(ChannelSettings)


@pytest.mark.parametrize("kind", CHANNELS)
def test_target_is_stored_and_described_without_what_is_secret(settings: ChannelSettings, kind: str) -> None:
    entered, description = TARGETS[kind]
    stored = read_target(kind, entered | {"unknown": "x"}, create_channels(settings, KEY))
    assert json.loads(json.dumps(stored)) == stored
    assert CHANNELS[kind].describe(stored) == description
    assert "secret" not in repr(CHANNELS[kind].target.model_validate(stored))
    assert read_target(kind, stored, create_channels(settings, KEY)) == stored


@pytest.mark.parametrize(
    "value",
    [None, 7, "text", [], {}, {"address": 7}, {"address": "ann"}, {"url": "x", "secret": 7}, {"endpoint": "x"}],
)
@pytest.mark.parametrize("kind", CHANNELS)
def test_what_is_no_target_gets_one_sentence_that_quotes_nothing(
    settings: ChannelSettings, kind: str, value: object
) -> None:
    with pytest.raises(InvalidChannel) as error:
        read_target(kind, value, create_channels(settings, KEY))
    assert str(error.value) == CHANNELS[kind].target.invalid


@pytest.mark.parametrize(
    ("kind", "target", "problem"),
    [
        ("ntfy", {"server": "https://other.example", "topic": "a"}, Problem.HOST_NOT_LISTED),
        ("webhook", {"url": "https://127.0.0.1/a", "secret": "a secret of 16 b"}, Problem.HOST_NOT_LISTED),
        ("email", {"address": "bob@other.example"}, Problem.RECIPIENT_NOT_LISTED),
        ("push", {**SUBSCRIPTION, "endpoint": "https://push.example/a"}, Problem.UNKNOWN_SERVICE),
        ("push", {**SUBSCRIPTION, "endpoint": "https://web.push.apple.com/a"}, Problem.CONTACT_MISSING),
    ],
)
def test_target_that_may_not_be_used_is_not_added(
    settings: ChannelSettings, kind: str, target: dict[str, Any], problem: Problem
) -> None:
    with pytest.raises(InvalidChannel) as error:
        read_target(kind, target, create_channels(settings, KEY))
    assert str(error.value) == PROBLEMS[problem]


def test_without_settings_only_push_is_possible(monkeypatch: pytest.MonkeyPatch) -> None:
    available = create_channels(read(monkeypatch), KEY)
    reasons = {kind: row.explain_missing(available) for kind, row in CHANNELS.items()}
    ask = "is not set up here. Ask whoever runs this server to set"
    assert reasons == {
        "push": None,
        "ntfy": f"ntfy {ask} ALERT_HOSTS.",
        "webhook": f"Webhook {ask} ALERT_HOSTS.",
        "email": f"E-mail {ask} SMTP_URL, SMTP_FROM and SMTP_RECIPIENTS.",
    }
    with pytest.raises(InvalidChannel, match="ALERT_HOSTS"):
        read_target("ntfy", TARGETS["ntfy"][0], available)


def test_unknown_kind(settings: ChannelSettings) -> None:
    with pytest.raises(InvalidChannel, match="push, ntfy, webhook, email"):
        read_target("pigeon", {}, create_channels(settings, KEY))


def test_target_that_is_no_longer_valid_has_the_name_of_its_kind() -> None:
    assert CHANNELS["ntfy"].describe({"server": "x"}) == "ntfy"


@pytest.mark.parametrize(
    ("values", "contact"),
    [
        ({}, None),
        ({"BACKEND_URL": "https://todo.example/todo"}, "https://todo.example/todo"),
        ({"BACKEND_URL": "http://todo.example"}, None),
        ({"BACKEND_URL": "https://localhost:8443"}, None),
        ({"BACKEND_URL": "https://todo.example", "ALERT_CONTACT": "mailto:ann@example.com"}, "mailto:ann@example.com"),
        ({"ALERT_CONTACT": "https://example.com/contact"}, "https://example.com/contact"),
    ],
)
def test_contact_of_push(monkeypatch: pytest.MonkeyPatch, values: dict[str, str], contact: str | None) -> None:
    assert read(monkeypatch, **values).push_contact == contact


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("ALERT_CONTACT", ["ann@example.com", "mailto:", "mailto:ann", "http://example.com", "mailto:a@b c", "tel:1"]),
        ("ALERT_HOSTS", ["https://ntfy.sh/topic", "ftp://ntfy.sh", "ntfy.sh,a b", "https://a@ntfy.sh", "*", "a:99999"]),
        ("SMTP_URL", ["mail.example", "smtp://ann@mail.example", "http://ann:secret@mail.example", "smtp://a:secret@"]),
        ("SMTP_FROM", ["To-dos", "a@b, c@d", "To-dos todo@example.com"]),
        ("SMTP_RECIPIENTS", ["example.com", "ann", "@", "*@example.com", "@example.com,x"]),
    ],
)
def test_invalid_setting_has_one_sentence_without_its_value(
    monkeypatch: pytest.MonkeyPatch, name: str, values: list[str]
) -> None:
    for value in values:
        with pytest.raises(SettingsInvalid) as error:
            read(monkeypatch, **{name: value})
        assert str(error.value).startswith(f"{name} must "), value
        assert "\n" not in str(error.value)
        assert "secret" not in str(error.value)


def test_password_of_the_mail_server_is_not_shown(settings: ChannelSettings) -> None:
    assert "secret" not in repr(settings)


@pytest.mark.parametrize("missing", ["SMTP_FROM", "SMTP_RECIPIENTS"])
def test_mail_server_needs_sender_and_recipients(monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    settings = read(monkeypatch, **{name: value for name, value in ALL.items() if name != missing})
    assert settings.find_smtp_problem() == (
        "SMTP_URL needs SMTP_FROM and SMTP_RECIPIENTS. See .env.example for what they mean."
    )


@pytest.mark.parametrize("problem", Problem)
def test_each_problem_says_what_happens_or_what_to_do(problem: Problem) -> None:
    sentence = SendResult(Outcome.RETRY, problem=problem).sentence
    assert sentence.endswith(".")
    assert any(
        word in sentence for word in ("Ask ", "Check ", "Use ", "Enter ", "Open ", "Remove ", "Turn ", "sent again")
    )


def test_result_of_a_test_is_one_sentence() -> None:
    assert SendResult(Outcome.ACCEPTED).sentence == "The notification was accepted."
