"""What can be wrong with a request to a conversation or run, and the errors that functions of the database raise."""

import json
import math

import psycopg

from backend.errors import BackendError, Busy, LeaseLost, LimitReached, NotFound
from backend.users.idempotency import KeyStored
from backend.users.schedules import ScheduleTaken


class AlreadyDecided(BackendError):
    """This was decided already."""

    code, status = "already_decided", 400


class AlreadyEnded(BackendError):
    """This interaction has already ended, so it cannot be cancelled."""

    code, status = "already_ended", 409


class RunEnded(AlreadyEnded):
    """This interaction has already ended. Send the message as an interaction of its own."""


class MessageRead(BackendError):
    """The assistant has already read this message."""

    code, status = "message_read", 409


class NotShown(BackendError):
    """This interaction is on another branch. Switch to it with POST …/branch and edit it then."""

    code, status = "interaction_not_shown", 409


class NotFirstMessage(BackendError):
    """This message was read by an answer that had already begun. Edit the message that the answer began with."""

    code, status = "steering_message", 409


class OwnerOnly(BackendError):
    """This conversation works in a directory of its owner, who continues it with ./todo chat on this machine."""

    code, status = "owner_only", 403


class NameTaken(BackendError):
    """Another conversation has this name."""

    code, status = "name_taken", 409


# What `count_request` says: the limit's name → the sentence.
_LIMITS = {
    "running": "Only {most} of your answers can be written at once. Wait until one is finished, then try again.",
    "per_minute": "You have reached the limit of {most} messages a minute. Try again in {seconds} seconds.",
    "per_day": "You have reached the limit of {most:,} messages a day. Try again later.",
    "tokens_per_day": "You have used up your {most:,} model tokens of today. Try again {wait}.",
    "conversations": "You have reached the limit of {most:,} conversations. Continue one of them, or delete some.",
    "idempotency_keys": (
        "The stored responses to your requests with an idempotency key have reached their limit of {most:,}, or 10 MB. "
        "Send this one without a key, or try again in some days."
    ),
}
_RUNNING_SECONDS, _AN_HOUR = 5, 3600


def running_limit(most: int) -> LimitReached:
    return LimitReached(_LIMITS["running"].format(most=most), retry_seconds=_RUNNING_SECONDS)


def _render_wait(seconds: int) -> str:
    hours = math.ceil(seconds / _AN_HOUR)
    return "within an hour" if hours == 1 else f"in {hours} hours"


def from_database(error: psycopg.Error) -> BackendError | None:
    """Converts an error that a function or constraint of the database has raised; None for any other."""
    match error.sqlstate:
        case "23505" if error.diag.constraint_name == "conversations_by_name":
            return NameTaken()
        case "TD001":
            return LeaseLost()
        case "TD002":
            reached = json.loads(error.diag.message_primary or "{}")
            if reached["limit"] == "running":
                return running_limit(reached["most"])
            seconds = reached["seconds"] if reached["limit"] in ("per_minute", "tokens_per_day") else _AN_HOUR
            sentence = _LIMITS[reached["limit"]].format_map({**reached, "wait": _render_wait(seconds)})
            return LimitReached(sentence, retry_seconds=seconds)
        case "TD003":
            return Busy()
        case "TD004":
            return NotFound("This conversation was deleted. Start another one.")
        case "TD005":
            return KeyStored()
        case "TD006":
            return ScheduleTaken()
        case _:
            return None
