"""`/alerts`: settings and channels of notifications, what was sent, and the actions of a notification."""

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query, Request

from backend.alerts import history, settings, user_channels
from backend.alerts.channels.channel import Outcome
from backend.alerts.channels.table import CHANNELS, read_target
from backend.alerts.history import PastAlert
from backend.alerts.settings import AlertSettings
from backend.alerts.user_channels import UserChannel
from backend.api.alerts import schemas
from backend.api.dependencies import (
    AppServices,
    LimitedUser,
    PageUser,
    PollingUser,
    PublicRoute,
    Services,
    UserRoute,
    forbid_caching,
)
from backend.api.identity import AuthenticatedUser
from backend.api.openapi import errors
from backend.errors import InvalidRequest, NotFound
from backend.users.limits import check_rate
from common.server.address_turns import get_network

_MAX_ID = 2**63 - 1
_MOST = 100
_CHANGED = "Nothing was done: the task was completed or deleted, or is due at another time by now."

ChannelId = Annotated[int, Path(ge=1, le=_MAX_ID)]
Key = Annotated[str, Path(pattern="^[A-Za-z0-9_-]{1,32}$")]

router = APIRouter(prefix="/alerts", route_class=UserRoute, dependencies=[Depends(forbid_caching)])
public_router = APIRouter(prefix="/alerts", route_class=PublicRoute, dependencies=[Depends(forbid_caching)])


@router.get("/settings")
async def get_settings(services: AppServices, user: LimitedUser) -> schemas.ShownSettings:
    """Returns the settings, the channels in the order in which they are used, and what kinds can be added."""
    return await _show_settings(services, user, await settings.load_settings(services.database, user.user_id))


@router.patch("/settings")
async def change_settings(
    services: AppServices, user: LimitedUser, body: schemas.SettingsChange
) -> schemas.ShownSettings:
    """Changes what the body names. Switched off, nothing is removed, and nothing is sent."""
    if not (changes := body.list_changes()):
        raise InvalidRequest("Send what is to change: on, remind, digest_time, quiet_from or quiet_until.")
    changed = await settings.change_settings(services.database, user.user_id, changes)
    return await _show_settings(services, user, changed)


@router.post("/channels", status_code=201, responses=errors(422))
async def add_channel(services: AppServices, user: PageUser, body: schemas.NewChannel) -> schemas.ShownChannel:
    """Adds a channel after the others, or renews the one with the same target."""
    opened = await services.alerts.channels.open()
    added = await user_channels.add_channel(
        services.database,
        user.user_id,
        kind=body.kind,
        name=body.name,
        target=read_target(body.kind, body.target, opened.by_kind),
        session_id=user.sign_in.session_id,
    )
    return _show_channel(added, user)


@router.patch("/channels/{channel_id}", responses=errors(404))
async def change_channel(
    services: AppServices, user: LimitedUser, channel_id: ChannelId, body: schemas.ChannelChange
) -> schemas.ShownChannel:
    """Changes what the body names; switched on again, a channel has no problem until the next try."""
    if body.name is None and body.on is None and body.position is None:
        raise InvalidRequest("Send what is to change: position, on or name.")
    changed = await user_channels.change_channel(
        services.database, user.user_id, channel_id, name=body.name, is_on=body.on, position=body.position
    )
    if changed is None:
        raise NotFound.of("channel", str(channel_id))
    return _show_channel(changed, user)


@router.delete("/channels/{channel_id}", status_code=204, responses=errors(404))
async def delete_channel(services: AppServices, user: LimitedUser, channel_id: ChannelId) -> None:
    if not await user_channels.delete_channel(services.database, user.user_id, channel_id):
        raise NotFound.of("channel", str(channel_id))


@router.post("/channels/{channel_id}/test", responses=errors(404))
async def test_channel(services: AppServices, user: LimitedUser, channel_id: ChannelId) -> schemas.TestResult:
    """Sends a test notification now, also in quiet hours, and says what happened."""
    check_rate(services.alert_test_limit, user.user_id)
    channel = await user_channels.find_channel(services.database, user.user_id, channel_id)
    if channel is None:
        raise NotFound.of("channel", str(channel_id))
    result = await services.alerts.send_test(user.user_id, channel)
    return schemas.TestResult(accepted=result.outcome == Outcome.ACCEPTED, message=result.sentence)


@router.get("")
async def list_alerts(
    services: AppServices, user: LimitedUser, limit: Annotated[int, Query(ge=1, le=_MOST)] = 20
) -> schemas.AlertList:
    """Returns the newest alerts of the last 30 days, and what happened at each channel."""
    alerts, deliveries = await history.list_alerts(services.database, user.user_id, most=limit)
    return schemas.AlertList(alerts=[schemas.ShownAlert.create(alert, deliveries[alert.id]) for alert in alerts])


@router.get("/unshown")
async def list_unshown(services: AppServices, user: PollingUser) -> schemas.UnshownAlerts:
    """Returns what an open page should show, as no channel has brought it to the user."""
    messages = await services.alerts.list_unshown(user.user_id)
    return schemas.UnshownAlerts(alerts=[*map(schemas.PageAlert.create, messages)])


@public_router.post("/shown", status_code=204, responses=errors(429))
async def confirm(request: Request, services: AppServices, body: schemas.Proof) -> None:
    """A device says that it has shown a notification, with the proof that came with it; it need not be signed in."""
    check_rate(services.alert_proof_limit, get_network(request.client.host if request.client else ""))
    await history.confirm(services.database, body.proof, services.clock())


@router.post("/{key}/shown", status_code=204, responses=errors(404))
async def show(services: AppServices, user: LimitedUser, key: Key) -> None:
    """The page has shown an alert."""
    if not await history.show(services.database, user.user_id, key, services.clock()):
        raise NotFound.of("alert", key)


@router.post("/{key}/done", responses=errors(404))
async def complete_task(services: AppServices, user: LimitedUser, key: Key) -> schemas.ActionResult:
    """Completes the task of an alert, unless it has changed since."""
    alert = await _find_alert(services, user, key)
    done = await services.alerts.complete_task(user.user_id, alert, time_zone=user.time_zone)
    return schemas.ActionResult(done=done, message="The task was completed." if done else _CHANGED)


@router.post("/{key}/snooze", responses=errors(404))
async def snooze(services: AppServices, user: LimitedUser, key: Key, body: schemas.Snooze) -> schemas.ActionResult:
    """Lets the task of an alert alert again, unless it has changed since."""
    alert = await _find_alert(services, user, key)
    done = await services.alerts.snooze(user.user_id, alert, minutes=body.minutes)
    again = f"You are notified again in {body.minutes} minute{'' if body.minutes == 1 else 's'}."
    return schemas.ActionResult(done=done, message=again if done else _CHANGED)


async def _find_alert(services: Services, user: AuthenticatedUser, key: str) -> PastAlert:
    """Finds the alert that the user has acted on, and so has seen."""
    alert = await history.find_alert(services.database, user.user_id, key)
    if alert is None:
        raise NotFound.of("alert", key)
    await history.show(services.database, user.user_id, key, services.clock())
    return alert


async def _show_settings(services: Services, user: AuthenticatedUser, shown: AlertSettings) -> schemas.ShownSettings:
    opened = await services.alerts.channels.open()
    channels = await user_channels.list_channels(services.database, user.user_id)
    kinds = [(row, row.explain_missing(opened.by_kind)) for row in CHANNELS.values()]
    return schemas.ShownSettings.create(
        shown,
        push_key=opened.push_key,
        channels=[_show_channel(channel, user) for channel in channels],
        kinds=[
            schemas.ShownKind(kind=row.kind, name=row.name, possible=why_not is None, why_not=why_not)
            for row, why_not in kinds
        ],
    )


def _show_channel(channel: UserChannel, user: AuthenticatedUser) -> schemas.ShownChannel:
    session_id = user.sign_in.session_id
    return schemas.ShownChannel(
        id=channel.id,
        kind=channel.kind,
        name=channel.name,
        target=CHANNELS[channel.kind].describe(channel.target),
        state="on" if channel.is_on else "off",
        problem=schemas.render_problem(channel.problem),
        confirms=channel.confirmed_at is not None,
        this_device=session_id is not None and channel.session_id == session_id,
        last_sent_at=channel.last_sent_at,
        last_shown_at=channel.last_shown_at,
    )
