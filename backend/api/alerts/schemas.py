"""The bodies and responses of the paths below `/alerts`."""

from datetime import datetime, time
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, Field, StrictBool, StrictInt, StrictStr
from pydantic_core import PydanticCustomError

from backend.alerts.channels.channel import Notification
from backend.alerts.history import PastAlert, PastDelivery
from backend.alerts.routing import explain_problem
from backend.alerts.settings import AlertSettings
from backend.alerts.states import AlertKind, AlertState, DeliveryState
from backend.api.request_body import RequestBody
from common.task_words import MAX_REMIND, REMIND_NEVER
from common.text import is_single_line_text

_MAX_NAME = 100
_CLOCK = r"^([01]\d|2[0-3]):[0-5]\d$"

ClockTime = Annotated[str, Field(strict=True, pattern=_CLOCK, description="A wall time such as 08:00.")]
Minutes = Annotated[StrictInt, Field(ge=0, le=MAX_REMIND)] | Literal["none"]
"""Minutes before the due time; "none" for never."""


def _check_name(name: str) -> str:
    if not is_single_line_text(name, max_length=_MAX_NAME):
        raise PydanticCustomError(
            "channel_name", "must be a visible text of 1 to {most} characters on one line", {"most": _MAX_NAME}
        )
    return name


Name = Annotated[StrictStr, AfterValidator(_check_name)]


class SettingsChange(RequestBody):
    """What is not sent stays as it is."""

    on: StrictBool | None = None
    remind: Minutes | None = None
    digest_time: ClockTime | None = None
    """Null switches the digest off."""
    quiet_from: ClockTime | None = None
    """Null, as `quiet_until`, for no quiet hours."""
    quiet_until: ClockTime | None = None

    def list_changes(self) -> dict[str, Any]:
        """Returns what is to change, by the names of `AlertSettings`."""
        sent = {name: getattr(self, name) for name in self.model_fields_set}
        changes: dict[str, Any] = {
            name: None if sent[name] is None else time.fromisoformat(sent[name])
            for name in ("digest_time", "quiet_from", "quiet_until")
            if name in sent
        }
        if self.on is not None:
            changes["is_on"] = self.on
        if self.remind is not None:
            changes["remind"] = REMIND_NEVER if self.remind == "none" else self.remind
        return changes


class Problem(BaseModel):
    code: str
    message: str
    """A sentence that says what to do."""


class ShownChannel(BaseModel):
    id: int
    kind: str
    name: str
    target: str
    """Where it sends, without what is secret."""
    state: Literal["on", "off"]
    problem: Problem | None
    confirms: bool
    """Whether this device has said before that it had shown a notification."""
    this_device: bool
    last_sent_at: datetime | None
    last_shown_at: datetime | None


class ShownKind(BaseModel):
    kind: str
    name: str
    possible: bool
    why_not: str | None


class ShownSettings(BaseModel):
    on: bool
    remind: Minutes
    digest_time: str | None
    quiet_from: str | None
    quiet_until: str | None
    push_key: str
    """What `pushManager.subscribe` needs as `applicationServerKey`."""
    channels: list[ShownChannel]
    """In the order in which they are used."""
    kinds: list[ShownKind]

    @classmethod
    def create(
        cls, settings: AlertSettings, *, push_key: str, channels: list[ShownChannel], kinds: list[ShownKind]
    ) -> Self:
        return cls(
            on=settings.is_on,
            remind="none" if settings.remind == REMIND_NEVER else settings.remind,
            digest_time=_render_clock(settings.digest_time),
            quiet_from=_render_clock(settings.quiet_from),
            quiet_until=_render_clock(settings.quiet_until),
            push_key=push_key,
            channels=channels,
            kinds=kinds,
        )


class NewChannel(RequestBody):
    kind: StrictStr
    name: Name
    target: dict[str, Any]
    """Of push: what `PushSubscription.toJSON()` returns."""


class ChannelChange(RequestBody):
    position: Annotated[StrictInt, Field(ge=1, le=100)] | None = None
    """1 is the channel that is used first."""
    on: StrictBool | None = None
    name: Name | None = None


class TestResult(BaseModel):
    accepted: bool
    message: str


class ShownDelivery(BaseModel):
    channel: str
    """The name of the channel."""
    channel_id: int
    kind: str
    state: DeliveryState
    at: datetime
    problem: Problem | None


class ShownAlert(BaseModel):
    key: str
    kind: AlertKind
    tasks: list[int]
    alert_at: datetime
    late: bool
    state: AlertState
    deliveries: list[ShownDelivery]

    @classmethod
    def create(cls, alert: PastAlert, deliveries: list[PastDelivery]) -> Self:
        return cls(
            key=alert.key,
            kind=alert.kind,
            tasks=[task["id"] for task in alert.tasks],
            alert_at=alert.alert_at,
            late=alert.late,
            state=alert.state,
            deliveries=[
                ShownDelivery(
                    channel=one.name,
                    channel_id=one.channel_id,
                    kind=one.kind,
                    state=one.state,
                    at=one.at,
                    problem=render_problem(one.problem),
                )
                for one in deliveries
            ],
        )


class AlertList(BaseModel):
    alerts: list[ShownAlert]
    """The newest first."""


class PageAlert(BaseModel):
    """What a device gets by push."""

    key: str
    kind: str
    title: str
    body: str
    url: str
    task: int | None
    proof: None
    late: bool
    actions: bool

    @classmethod
    def create(cls, message: Notification) -> Self:
        return cls.model_validate(message, from_attributes=True)


class UnshownAlerts(BaseModel):
    alerts: list[PageAlert]


class Proof(RequestBody):
    proof: Annotated[str, Field(strict=True, pattern=r"^[A-Za-z0-9_-]{16,64}$")]


class Snooze(RequestBody):
    minutes: Annotated[StrictInt, Field(ge=1, le=MAX_REMIND)] = 10


class ActionResult(BaseModel):
    done: bool
    message: str
    """What was done, or why nothing was."""


def render_problem(code: str | None) -> Problem | None:
    return None if code is None else Problem(code=code, message=explain_problem(code))


def _render_clock(clock: time | None) -> str | None:
    return None if clock is None else f"{clock:%H:%M}"
