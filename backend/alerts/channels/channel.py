"""What every channel of notifications has in common: its message, its result and the problems that users read."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Protocol, Self

from common.text import remove_invisible

_SPACES = "\t\n\v\f\r\x1c\x1d\x1e\x85\u2028\u2029"
_TO_SPACE = str.maketrans(_SPACES, " " * len(_SPACES))
_MAX_TITLE_CHARS, _MAX_BODY_CHARS = 250, 4_000


@dataclass(frozen=True)
class Notification:
    key: str
    """Names the alert: base64url, at most 32 characters, equal in each repetition."""
    kind: str
    title: str
    body: str
    url: str
    task: int | None
    proof: str | None
    late: bool
    actions: bool

    def clean(self) -> Self:
        """Returns it with a title of one line, and without characters that would change how the rest is read."""
        title = clean_text(self.title.translate(_TO_SPACE)).strip()
        body = clean_text(self.body.replace("\r\n", "\n").replace("\r", "\n")).strip()
        return replace(self, title=shorten(title, _MAX_TITLE_CHARS), body=shorten(body, _MAX_BODY_CHARS))


def clean_text(text: str) -> str:
    return remove_invisible(text.encode("utf-8", "replace").decode())  # a lone surrogate could not be sent


def shorten(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1].rstrip()}…"


class Outcome(StrEnum):
    ACCEPTED = "accepted"
    RETRY = "retry"
    """It was certainly not delivered, and a later try may succeed."""
    PERMANENT = "permanent"
    """It was not delivered, and no later try can succeed: the channel is switched off."""
    UNKNOWN = "unknown"
    """It may have been delivered: the same channel is tried again with the same key."""


class Problem(StrEnum):
    """Why a channel did not accept a message; each has its sentence in `PROBLEMS`."""

    ENDED = "ended"
    REJECTED = "rejected"
    TOO_LARGE = "too_large"
    BUSY = "busy"
    SERVER_ERROR = "server_error"
    UNREACHABLE = "unreachable"
    TIMEOUT = "timeout"
    INTERRUPTED = "interrupted"
    REDIRECTED = "redirected"
    CERTIFICATE = "certificate"
    INVALID_TARGET = "invalid_target"
    HOST_NOT_LISTED = "host_not_listed"
    INTERNAL_ADDRESS = "internal_address"
    CONTACT_MISSING = "contact_missing"
    UNKNOWN_SERVICE = "unknown_service"
    SIGNATURE = "signature"
    LOGIN = "login"
    NO_ENCRYPTION = "no_encryption"
    SENDER_REJECTED = "sender_rejected"
    RECIPIENT_NOT_LISTED = "recipient_not_listed"
    RECIPIENT_REJECTED = "recipient_rejected"
    NOT_SET_UP = "not_set_up"


_ASK = "whoever runs this server"
_AGAIN = "Notifications are sent again by themselves; after a test, send another one later."
PROBLEMS: Mapping[Problem, str] = {
    Problem.ENDED: "The device no longer accepts notifications. Open the page on it and turn them on again.",
    Problem.REJECTED: "The server there rejected the notification. Check what you entered, then send a test.",
    Problem.TOO_LARGE: "The server there rejected the notification as too large. Use another channel.",
    Problem.BUSY: f"The server there accepts no more notifications for now. {_AGAIN}",
    Problem.SERVER_ERROR: f"The server there reported an error of its own. {_AGAIN}",
    Problem.UNREACHABLE: f"The server there could not be reached. {_AGAIN}",
    Problem.TIMEOUT: f"The server there did not answer in time. {_AGAIN}",
    Problem.INTERRUPTED: f"The connection was interrupted. {_AGAIN}",
    Problem.REDIRECTED: "The address redirects to another one, which is not followed. Enter the final address.",
    Problem.CERTIFICATE: f"The certificate of the server there is not valid. Ask {_ASK} to check it.",
    Problem.INVALID_TARGET: "The address of this channel is not valid. Remove the channel and add it again.",
    Problem.HOST_NOT_LISTED: f"Notifications may not be sent to that address. Ask {_ASK} to add it to ALERT_HOSTS.",
    Problem.INTERNAL_ADDRESS: (
        "The name of that host leads to an internal address, to which nothing is sent. "
        f"Ask {_ASK} to list the address itself in ALERT_HOSTS."
    ),
    Problem.CONTACT_MISSING: (
        f"Apple's push service accepts notifications only with a contact. Ask {_ASK} to set ALERT_CONTACT."
    ),
    Problem.UNKNOWN_SERVICE: "This browser's push service is not supported. Use another browser or channel.",
    Problem.SIGNATURE: (
        "The push service rejected this server's signature. Turn notifications off and on again on that device; "
        f"if that does not help, ask {_ASK} to check ALERT_CONTACT and the clock."
    ),
    Problem.LOGIN: f"The server there did not accept the login. Check the token, or ask {_ASK} to check the password.",
    Problem.NO_ENCRYPTION: f"The mail server offers no encryption. Ask {_ASK} to check SMTP_URL.",
    Problem.SENDER_REJECTED: f"The mail server does not accept this sender. Ask {_ASK} to check SMTP_FROM.",
    Problem.RECIPIENT_NOT_LISTED: (f"E-mail may not be sent to that address. Ask {_ASK} to add it to SMTP_RECIPIENTS."),
    Problem.RECIPIENT_REJECTED: "The mail server does not accept that address. Check it, then send a test.",
    Problem.NOT_SET_UP: f"This channel is no longer set up on this server. Ask {_ASK}, or use another channel.",
}
"""The sentences for users: what happened, and what to do."""


@dataclass(frozen=True)
class SendResult:
    outcome: Outcome
    retry_after: float | None = None
    """The seconds after which the server wants to be asked again."""
    problem: Problem | None = None

    @property
    def sentence(self) -> str:
        return "The notification was accepted." if self.problem is None else PROBLEMS[self.problem]


class Channel(Protocol):
    async def send(self, target: Mapping[str, Any], message: Notification) -> SendResult:
        """Sends a message. It never raises, apart from cancellation, and ends by its own timeout."""
        ...

    def find_problem(self, target: Mapping[str, Any]) -> Problem | None:
        """Returns why nothing may be sent to this target, as far as that is known without sending."""
        ...
