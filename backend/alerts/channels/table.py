"""The kinds of channels: one row each."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from backend.alerts.channels.channel import PROBLEMS, Channel
from backend.alerts.channels.http import HttpSender
from backend.alerts.channels.ntfy import NtfyChannel
from backend.alerts.channels.push import create_push_channel
from backend.alerts.channels.targets import EmailTarget, NtfyTarget, PushTarget, Target, WebhookTarget
from backend.alerts.channels.vapid import VapidKey
from backend.alerts.channels.webhook import WebhookChannel
from backend.errors import BackendError
from backend.settings import ChannelSettings
from common.mail import read_smtp_url
from common.text import join_words
from common.web_origins import AllowedOrigins


@dataclass(frozen=True)
class ChannelKind:
    kind: str
    name: str
    """How users call it."""
    target: type[Target]
    settings: tuple[str, ...]
    """The variables that the operator must set."""
    confirms: bool
    """Whether a device can say that it has shown the notification."""

    def explain_missing(self, available: Mapping[str, Channel]) -> str | None:
        """Returns why users cannot add such a channel, as a sentence; None if they can."""
        if self.kind in available:
            return None
        return f"{self.name} is not set up here. Ask whoever runs this server to set {join_words(self.settings)}."

    def describe(self, target: Mapping[str, Any]) -> str:
        """Returns what users see of a stored target, without what is secret."""
        try:
            return self.target.model_validate(target).describe()
        except ValidationError:
            return self.name


CHANNELS: Mapping[str, ChannelKind] = {
    row.kind: row
    for row in (
        ChannelKind("push", "This device", PushTarget, (), confirms=True),
        ChannelKind("ntfy", "ntfy", NtfyTarget, ("ALERT_HOSTS",), confirms=False),
        ChannelKind("webhook", "Webhook", WebhookTarget, ("ALERT_HOSTS",), confirms=False),
        ChannelKind("email", "E-mail", EmailTarget, ("SMTP_URL", "SMTP_FROM", "SMTP_RECIPIENTS"), confirms=False),
    )
}


def create_channels(settings: ChannelSettings, key: VapidKey) -> dict[str, Channel]:
    """Creates the channels that the operator has set up, by their kinds.

    Their clock is the machine's: push services and receivers of webhooks check times by their own.
    """
    channels: dict[str, Channel] = {"push": create_push_channel(key, settings.push_contact)}
    if settings.alert_hosts:
        http = HttpSender(AllowedOrigins(settings.alert_hosts))
        channels |= {"ntfy": NtfyChannel(http), "webhook": WebhookChannel(http)}
    if settings.smtp_url is not None and settings.smtp_from is not None:
        # Not at the top: most installations send no e-mail, and would load aiosmtplib for nothing.
        from backend.alerts.channels.email import EmailChannel, Recipients

        server = read_smtp_url(settings.smtp_url.get_secret_value())
        channels["email"] = EmailChannel(server, settings.smtp_from, Recipients(settings.smtp_recipients))
    return channels


class InvalidChannel(BackendError):
    """This channel cannot be added."""

    code, status = "invalid_channel", 422


def read_target(kind: str, value: object, available: Mapping[str, Channel]) -> dict[str, Any]:
    """Checks what a user entered and returns what is stored; raises `InvalidChannel` with a sentence for the user."""
    row = CHANNELS.get(kind)
    if row is None:
        raise InvalidChannel(f"There is no such channel. The kinds are {', '.join(CHANNELS)}.")
    if reason := row.explain_missing(available):
        raise InvalidChannel(reason)
    try:
        target = row.target.model_validate(value).dump()
    except ValidationError:
        raise InvalidChannel(row.target.invalid) from None
    if problem := available[kind].find_problem(target):
        raise InvalidChannel(PROBLEMS[problem])
    return target
