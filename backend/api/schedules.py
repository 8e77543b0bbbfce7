"""`/schedules`: lists, makes, changes, runs and deletes what the assistant does at certain times by itself."""

from datetime import datetime, time
from typing import Annotated, Literal
from zoneinfo import ZoneInfo

from fastapi import APIRouter, Depends, Path, Query
from pydantic import BaseModel, Field, StrictBool, StrictStr

import english
from backend.api.dependencies import AppServices, LimitedUser, Once, PollingUser, Services, UserRoute, forbid_caching
from backend.api.identity import AuthenticatedUser
from backend.api.openapi import errors
from backend.api.request_body import RequestBody
from backend.errors import InvalidRequest
from backend.ids import new_id
from backend.runs.outcomes import sentence_of
from backend.schedules.results import LastRun, add_last_runs, list_schedules
from backend.users import profiles, schedules
from backend.users.schedule_plans import MAX_TEXT, describe_times, read_plan
from backend.users.schedules import MAX_SCHEDULES, Schedule
from common.changes import render_changes
from common.clock import choose_zone, local_time

_NO_REPEAT = "Say how often and at what time, such as: every Friday at 16:00 summarise what I did."
_NO_TIME = "Say at what time, such as: {words} at 16:00."
_NO_TEXT = "Say what is to be done {words}, such as: summarise what I did."
_SKIPPED = {
    "running": "The one before was still running.",
    "waiting": "The one before still waits for your approval.",
    "limit": "One of your limits was reached: conversations, messages or model tokens.",
    "account": "Your account was disabled.",
    "provider": "The identity provider had ended your sign-in.",
}

router = APIRouter(route_class=UserRoute, dependencies=[Depends(forbid_caching)])

ScheduleId = Annotated[str, Path(max_length=100, description="The `id` of a schedule in the list.")]
Repeat = Field(max_length=300, description="An RFC 5545 rule as tasks have it, such as FREQ=WEEKLY;BYDAY=FR.")
Time = Field(max_length=5, description="The local time, such as 16:00.")
OnlyIfNeeded = Field(default=False, description="Whether only what fails or waits for approval is reported.")


class NewSchedule(RequestBody):
    text: StrictStr = Field(max_length=MAX_TEXT, description="What is to be done each time.")
    repeat: StrictStr = Repeat
    time: StrictStr = Time
    only_if_needed: StrictBool = OnlyIfNeeded


class ScheduleChange(RequestBody):
    text: StrictStr | None = Field(default=None, max_length=MAX_TEXT)
    repeat: StrictStr | None = Field(default=None, max_length=300)
    time: StrictStr | None = Field(default=None, max_length=5)
    paused: StrictBool | None = None
    only_if_needed: StrictBool | None = None


class LastResult(BaseModel):
    """`state` is the outcome; `changes` say what was changed, whatever the answer says."""

    run_id: str
    at: datetime
    state: Literal["running", "waiting", "completed", "failed", "cancelled", "interrupted"]
    answer: str
    changes: str
    problem: str | None = Field(description="Why it did not complete, or that it changed nothing.")


class SkippedTime(BaseModel):
    at: datetime
    reason: str


class ShownSchedule(BaseModel):
    id: str
    text: str
    repeat: str
    time: str
    when: str = Field(description="The repeat and time in words.")
    time_zone: str
    state: Literal["on", "paused", "ended"]
    next_at: datetime | None
    only_if_needed: bool
    chat_id: str | None = Field(description="The conversation of its answers; null before the first one.")
    last: LastResult | None
    skipped: SkippedTime | None = Field(description="The last time without an answer, if it was after the last run.")


class ScheduleList(BaseModel):
    schedules: list[ShownSchedule]
    most: int


class SchedulePreview(BaseModel):
    """What a text says of a new schedule; `problem` says what is missing."""

    text: str
    repeat: str | None = None
    time: str | None = None
    when: str | None = None
    next_at: datetime | None = None
    problem: str | None = None


def _show(schedule: Schedule, last: LastRun | None, services: Services) -> ShownSchedule:
    return ShownSchedule(
        id=schedule.id,
        text=schedule.text,
        repeat=schedule.repeat,
        time=f"{schedule.at_time:%H:%M}",
        when=describe_times(schedule.repeat, schedule.at_time),
        time_zone=choose_zone(schedule.zone, services.time_zone).key,
        state="paused" if schedule.paused else "ended" if schedule.next_at is None else "on",
        next_at=schedule.next_at,
        only_if_needed=schedule.only_if_needed,
        chat_id=schedule.conversation_id,
        last=_show_result(last) if last else None,
        skipped=_show_skipped(schedule),
    )


def _show_result(run: LastRun) -> LastResult:
    code = run.error_code or run.notice
    return LastResult(
        run_id=run.id,
        at=run.created_at,
        state=run.status,
        answer=run.answer or "",
        changes=render_changes(run.changes or {}),
        problem=sentence_of(code, run.values) if code and run.status not in ("running", "waiting") else None,
    )


def _show_skipped(schedule: Schedule) -> SkippedTime | None:
    if schedule.skipped_at is None or schedule.skip_reason is None:
        return None
    return SkippedTime(at=schedule.skipped_at, reason=_SKIPPED[schedule.skip_reason])


def _has_plan(body: ScheduleChange) -> bool:
    return (body.text, body.repeat, body.time) != (None, None, None)


async def _load(services: Services, user: AuthenticatedUser, schedule_id: str) -> ShownSchedule:
    schedule = await schedules.find(services.database, user.user_id, schedule_id)
    [(schedule, last)] = await add_last_runs(services.database, user.user_id, [schedule])
    return _show(schedule, last, services)


async def _get_zone(services: Services, user: AuthenticatedUser, schedule: Schedule | None) -> ZoneInfo:
    name = schedule.zone if schedule else await profiles.load_time_zone(services.database, user.user_id)
    return choose_zone(name, services.time_zone)


@router.get("/schedules")
async def get_schedules(services: AppServices, user: LimitedUser) -> ScheduleList:
    listed = await list_schedules(services.database, user.user_id)
    return ScheduleList(schedules=[_show(*each, services) for each in listed], most=MAX_SCHEDULES)


@router.get("/schedules/preview")
async def preview_schedule(
    services: AppServices, user: PollingUser, text: Annotated[str, Query(max_length=MAX_TEXT)]
) -> SchedulePreview:
    """Returns what a text such as "every Friday at 16:00 summarise what I did" says of a new schedule."""
    zone_name = user.time_zone or await profiles.load_time_zone(services.database, user.user_id)
    now, zone = services.clock(), choose_zone(zone_name, services.time_zone)
    here = local_time(now, zone.key)
    read = await services.text_reader.read(user.user_id, lambda: english.read_schedule(text, here, services.date_order))
    if read is None:
        return SchedulePreview(text=text, problem=_NO_REPEAT)
    preview = SchedulePreview(text=read.text, repeat=read.repeat, time=read.time and f"{read.time:%H:%M}")
    if read.time is None:
        words = describe_times(read.repeat, time()).removesuffix(" at 00:00")
        return preview.model_copy(update={"when": words, "problem": _NO_TIME.format(words=words)})
    when = describe_times(read.repeat, read.time)
    if not read.text:
        return preview.model_copy(update={"when": when, "problem": _NO_TEXT.format(words=when)})
    try:
        plan = read_plan(read.text, read.repeat, f"{read.time:%H:%M}", now=now, zone=zone)
    except InvalidRequest as error:
        return preview.model_copy(update={"when": when, "problem": str(error)})
    return SchedulePreview(
        text=plan.text,
        repeat=plan.repeat,
        time=f"{plan.at:%H:%M}",
        when=plan.describe(),
        next_at=plan.first.at,
    )


@router.post("/schedules", status_code=201, responses=errors(409))
async def add_schedule(services: AppServices, user: LimitedUser, body: NewSchedule, once: Once) -> ShownSchedule:
    async def add() -> ShownSchedule:
        schedule_id = new_id("sch")
        if user.time_zone is not None:
            await profiles.set_first_time_zone(services.database, user.user_id, user.time_zone)
        zone = await _get_zone(services, user, None)
        plan = read_plan(body.text, body.repeat, body.time, now=services.clock(), zone=zone)
        await schedules.add(
            services.database, user.user_id, schedule_id, plan, zone=None, only_if_needed=body.only_if_needed
        )
        return await _load(services, user, schedule_id)

    return await once(add)


@router.patch("/schedules/{schedule_id}", responses=errors(404, 409))
async def change_schedule(
    services: AppServices, user: LimitedUser, schedule_id: ScheduleId, body: ScheduleChange
) -> ShownSchedule:
    """Changes what the body names; another repeat or time begins now."""
    if not body.model_dump(exclude_none=True):
        raise InvalidRequest("Send what is to change: text, repeat, time, paused or only_if_needed.")
    schedule = await schedules.find(services.database, user.user_id, schedule_id)
    zone, now = await _get_zone(services, user, schedule), services.clock()
    text = schedule.text if body.text is None else body.text
    repeat, at = body.repeat or schedule.repeat, body.time or f"{schedule.at_time:%H:%M}"
    plan = read_plan(text, repeat, at, now=now, zone=zone) if _has_plan(body) else None
    await schedules.change(
        services.database,
        schedule,
        plan if body.repeat is not None or body.time is not None else None,
        text=plan.text if plan else schedule.text,
        paused=schedule.paused if body.paused is None else body.paused,
        only_if_needed=schedule.only_if_needed if body.only_if_needed is None else body.only_if_needed,
        now=now,
        zone=zone,
    )
    return await _load(services, user, schedule_id)


@router.post("/schedules/{schedule_id}/run", responses=errors(404, 409, 429))
async def run_schedule(services: AppServices, user: LimitedUser, schedule_id: ScheduleId, once: Once) -> ShownSchedule:
    """Starts it now, apart from its times."""

    async def run() -> ShownSchedule:
        await services.scheduler.start_now(user.user_id, schedule_id)
        return await _load(services, user, schedule_id)

    return await once(run)


@router.delete("/schedules/{schedule_id}", status_code=204, responses=errors(404))
async def delete_schedule(services: AppServices, user: LimitedUser, schedule_id: ScheduleId) -> None:
    """Deletes a schedule; the conversation with its answers stays."""
    await schedules.delete(services.database, user.user_id, schedule_id)
