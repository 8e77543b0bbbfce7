"""Chooses the channel of an alert: the first one that is on, and the next one only if it fails or does not confirm."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from backend.alerts.channels.channel import PROBLEMS, Outcome, Problem, SendResult
from backend.alerts.outbox import Delivery, Stored, Try, Work
from backend.alerts.states import AlertState
from backend.alerts.user_channels import UserChannel

PATIENCE = timedelta(minutes=5)
"""How long a channel is tried, or a device may take to confirm, before the next channel is used."""
LIFETIME = timedelta(hours=12)
"""After which an alert is not sent any more."""
NOT_CONFIRMED = "not_confirmed"
_NOT_CONFIRMED = "The device did not confirm that it has shown the notification. Open the page on it to see why."
_FIRST_PAUSE, _LONGEST_PAUSE = timedelta(seconds=10), timedelta(minutes=15)
_LONGEST_RETRY_AFTER = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Route:
    """`channel` is the one to send to; without one, the alert ends in `end`."""

    channel: UserChannel | None
    end: AlertState = "failed"
    given_up: list[tuple[int, str | None]] = field(default_factory=list)
    """The channels that are not used any more for the alert, each with its problem, if that is a new one."""
    has_next: bool = False
    """Whether another channel can be used after this one."""


def choose_route(work: Work, now: datetime) -> Route:
    channels = [channel for channel in work.channels if channel.is_on]
    was_accepted = any(one.state == "accepted" for one in work.deliveries.values())
    if now - work.alert.alert_at > LIFETIME:
        return Route(None, "sent" if was_accepted else "expired")
    given_up = list[tuple[int, str | None]]()
    for nth, channel in enumerate(channels):
        delivery = work.deliveries.get(channel.id)
        has_next = _has_unused(channels[nth + 1 :], work.deliveries)
        if delivery is None or (delivery.state in ("sending", "failed") and not _is_over(delivery, now, has_next)):
            return Route(channel, given_up=given_up, has_next=has_next)
        if delivery.state != "gave_up":
            given_up.append((channel.id, NOT_CONFIRMED if delivery.state == "accepted" else None))
    return Route(None, "sent" if was_accepted else "failed", given_up)


def _has_unused(channels: Sequence[UserChannel], deliveries: Mapping[int, Delivery]) -> bool:
    states = [deliveries[channel.id].state if channel.id in deliveries else None for channel in channels]
    return any(state in (None, "sending", "failed") for state in states)


def _is_over(delivery: Delivery, now: datetime, has_next: bool) -> bool:
    return has_next and now - delivery.first_at >= PATIENCE


def evaluate(result: SendResult, begun: Try, *, now: datetime, confirms: bool, has_next: bool) -> Stored:
    """Returns what is stored of a result; `confirms` tells that the device has confirmed a notification before."""
    match result.outcome:
        case Outcome.ACCEPTED if confirms:
            return Stored("accepted", "pending", now + PATIENCE)
        case Outcome.ACCEPTED:
            return Stored("accepted", "sent", None)
        case Outcome.PERMANENT:
            return Stored("gave_up", "pending", now, ends_channel=True)
        case _:
            pause = min(_FIRST_PAUSE * 2 ** min(begun.attempts - 1, 10), _LONGEST_PAUSE)
            if result.retry_after is not None:
                pause = max(pause, min(timedelta(seconds=result.retry_after), _LONGEST_RETRY_AFTER))
            next_at = now + pause
            if has_next:
                next_at = max(now, min(next_at, begun.first_at + PATIENCE))
            return Stored("sending" if result.outcome == Outcome.UNKNOWN else "failed", "pending", next_at)


def evaluate_test(result: SendResult) -> Stored:
    """Returns what is stored of a test, which is sent once."""
    if result.outcome == Outcome.ACCEPTED:
        return Stored("accepted", "sent", None)
    return Stored("gave_up", "failed", None, ends_channel=result.outcome == Outcome.PERMANENT)


def explain_problem(code: str) -> str:
    """Returns the sentence about a problem that is stored with a channel or a delivery."""
    return _NOT_CONFIRMED if code == NOT_CONFIRMED else PROBLEMS[Problem(code)]
