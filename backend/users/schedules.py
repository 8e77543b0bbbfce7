"""SQL of schedules, and when they are due: messages that the assistant answers again and again."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from typing import Any, Literal
from zoneinfo import ZoneInfo

from backend.errors import BackendError, LimitReached, NotFound
from backend.users.limits import lock_user
from backend.users.schedule_plans import Plan
from common import recurrence
from common.database import NO_USER, Database, Transaction
from common.recurrence import Occurrence

MAX_SCHEDULES = 10
SkipReason = Literal["running", "waiting", "limit", "account", "provider"]
"""Why an occurrence has no run: the last run has not ended or waits for approval, a limit is reached, the account is
disabled, or the identity provider has refused the user.
"""

COLUMNS = """s.user_id, s.id, s.text, s.repeat, s.at_time, coalesce(s.zone, p.time_zone) AS zone, s.next_on, s.next_at,
    s.paused, s.only_if_needed, s.conversation_id, s.last_run_id, s.last_state, s.skipped_at, s.skip_reason,
    s.created_at"""
OF_USER = "FROM schedules s LEFT JOIN profiles p ON p.user_id = s.user_id WHERE s.user_id = %(user)s"
_FIND = f"SELECT {COLUMNS} {OF_USER} AND s.id = %(id)s"
_IN_ZONE_OF_USER = f"""
SELECT {COLUMNS} {OF_USER} AND s.zone IS NULL AND s.next_on IS NOT NULL"""
# An approved call that is made again after a lost response finds the schedule that it has made.
_ADD = """
WITH added AS (
    INSERT INTO schedules (user_id, id, text, repeat, at_time, zone, next_on, next_at, only_if_needed)
    SELECT %(user)s, %(id)s, %(text)s, %(repeat)s, %(at)s, %(zone)s, %(next_on)s, %(next_at)s, %(only_if_needed)s
    WHERE %(most)s > (SELECT count(*) FROM schedules WHERE user_id = %(user)s)
    ON CONFLICT DO NOTHING RETURNING id
)
SELECT id FROM added UNION ALL SELECT id FROM schedules WHERE user_id = %(user)s AND id = %(id)s"""
_CHANGE = """
UPDATE schedules SET text = %(text)s, repeat = %(repeat)s, at_time = %(at)s, next_on = %(next_on)s,
    next_at = %(next_at)s, paused = %(paused)s, only_if_needed = %(only_if_needed)s, claimed_until = NULL
WHERE user_id = %(user)s AND id = %(id)s AND next_at IS NOT DISTINCT FROM %(was_at)s RETURNING id"""
_MOVE = """
UPDATE schedules SET next_at = %(next_at)s, claimed_until = NULL
WHERE user_id = %(user)s AND id = %(id)s AND next_at = %(was_at)s"""
_SKIP = """
UPDATE schedules SET repeat = %(repeat)s, next_on = %(next_on)s, next_at = %(next_at)s, paused = paused OR %(pause)s,
    skipped_at = %(was_at)s, skip_reason = %(reason)s, claimed_until = NULL
WHERE user_id = %(user)s AND id = %(id)s AND next_at = %(was_at)s AND NOT paused RETURNING id"""
_SET_STATE = """
UPDATE schedules SET last_state = %(state)s
WHERE user_id = %(user)s AND id = %(id)s AND last_run_id = %(run)s AND last_state = %(before)s
RETURNING only_if_needed"""
_DELETE = "DELETE FROM schedules WHERE user_id = %(user)s AND id = %(id)s RETURNING id"
_TAKE = """
SELECT take_schedule(%(id)s, %(due)s, %(run)s, %(conversation)s, %(repeat)s, %(next_on)s, %(next_at)s)"""
_CLAIM = "SELECT user_id, id FROM claim_schedules(%(now)s, %(most)s)"
_CHANGED = "SELECT user_id, id FROM changed_schedules(%(most)s)"


class ScheduleTaken(BackendError):
    """This schedule was changed or deleted in the meantime. Look at your schedules again."""

    code, status = "schedule_changed", 409


class ScheduleEnded(BackendError):
    """This schedule has ended: its last time has passed. Give it another repeat, or delete it."""

    code, status = "schedule_ended", 409


@dataclass(frozen=True, slots=True)
class Schedule:
    """A schedule as it is stored; `zone` is its own or its user's, None for the server's."""

    user_id: str
    id: str
    text: str
    repeat: str
    at_time: time
    zone: str | None
    next_on: date | None
    next_at: datetime | None
    paused: bool
    only_if_needed: bool
    conversation_id: str | None
    last_run_id: str | None
    last_state: str | None
    skipped_at: datetime | None
    skip_reason: SkipReason | None
    created_at: datetime


@dataclass(frozen=True, slots=True)
class TakenOccurrence:
    """An occurrence whose run is started: the one at `due`, or None for a run that the user wants now."""

    schedule_id: str
    due: datetime | None
    repeat: str
    following: Occurrence | None


def find_following(schedule: Schedule, *, now: datetime, zone: ZoneInfo) -> tuple[str, Occurrence | None]:
    """Returns the rule that is left after the next occurrence, and the first one after that and after now."""
    assert schedule.next_on is not None
    rule = recurrence.parse_rule(schedule.repeat)
    following = recurrence.find_next_occurrence(rule, schedule.at_time, zone, last=schedule.next_on, after=now)
    return (str(recurrence.get_next_rule(rule)) if following else schedule.repeat), following


async def add(
    database: Database, user_id: str, schedule_id: str, plan: Plan, *, zone: str | None, only_if_needed: bool
) -> None:
    """Stores a schedule once for its id. Raises `LimitReached`."""
    values = {"text": plan.text, "repeat": plan.repeat, "at": plan.at, "zone": zone, "only_if_needed": only_if_needed}
    async with database.transaction(user_id) as tx:
        await lock_user(tx)
        added = await tx.execute(
            _ADD, id=schedule_id, most=MAX_SCHEDULES, next_on=plan.first.day, next_at=plan.first.at, **values
        )
    if await added.fetchone() is None:
        raise LimitReached(f"You have {MAX_SCHEDULES} schedules, which is the limit. Delete one of them first.")


async def find(database: Database, user_id: str, schedule_id: str) -> Schedule:
    schedule = await database.fetch_one(user_id, _FIND, Schedule, id=schedule_id)
    if schedule is None:
        raise NotFound.of("schedule", schedule_id)
    return schedule


async def change(
    database: Database,
    schedule: Schedule,
    plan: Plan | None,
    *,
    text: str,
    paused: bool,
    only_if_needed: bool,
    now: datetime,
    zone: ZoneInfo,
) -> None:
    """Changes a schedule; a `plan` replaces its times. One that goes on after a pause skips what was due until now.

    Raises `ScheduleTaken` if its run was started in the meantime, and `ScheduleEnded` for one without a next time.
    """
    repeat, at = (plan.repeat, plan.at) if plan else (schedule.repeat, schedule.at_time)
    following = plan.first if plan else _get_next(schedule)
    if plan is None and schedule.paused and not paused:
        if following is None:
            raise ScheduleEnded
        if following.at <= now:
            _, following = find_following(schedule, now=now, zone=zone)
    changed = await database.fetch_one(
        schedule.user_id,
        _CHANGE,
        id=schedule.id,
        was_at=schedule.next_at,
        text=text,
        repeat=repeat,
        at=at,
        paused=paused,
        only_if_needed=only_if_needed,
        **_get_columns(following),
    )
    if changed is None:
        raise ScheduleTaken


def _get_next(schedule: Schedule) -> Occurrence | None:
    if schedule.next_on is None or schedule.next_at is None:
        return None
    return Occurrence(schedule.next_on, schedule.next_at)


def _get_columns(occurrence: Occurrence | None) -> dict[str, Any]:
    return {"next_on": occurrence and occurrence.day, "next_at": occurrence and occurrence.at}


async def delete(database: Database, user_id: str, schedule_id: str) -> None:
    """Deletes a schedule; its conversation stays. Raises `NotFound`."""
    if await database.fetch_one(user_id, _DELETE, id=schedule_id) is None:
        raise NotFound.of("schedule", schedule_id)


async def move(database: Database, schedule: Schedule, next_at: datetime) -> None:
    """Stores another instant of the next occurrence, as its zone has changed."""
    await database.execute(schedule.user_id, _MOVE, id=schedule.id, was_at=schedule.next_at, next_at=next_at)


async def move_all(database: Database, user_id: str, zone: ZoneInfo) -> None:
    """Stores the instants of a user's schedules after their zone has changed."""
    for schedule in await database.fetch_all(user_id, _IN_ZONE_OF_USER, Schedule):
        assert schedule.next_on is not None
        await move(database, schedule, recurrence.to_instant(schedule.next_on, schedule.at_time, zone))


async def send_skip(tx: Transaction, schedule: Schedule, taken: TakenOccurrence, reason: SkipReason) -> bool:
    """Stores that an occurrence has no run; one without an account pauses the schedule. False if it was taken."""
    skipped = await tx.execute(
        _SKIP,
        id=schedule.id,
        was_at=schedule.next_at,
        reason=reason,
        pause=reason == "account",
        repeat=taken.repeat,
        **_get_columns(taken.following),
    )
    return await skipped.fetchone() is not None


async def send_taken(tx: Transaction, taken: TakenOccurrence, run_id: str, conversation_id: str) -> None:
    """Stores that a run is started for an occurrence; the transaction fails with `ScheduleTaken` if it was taken."""
    where = {"id": taken.schedule_id, "run": run_id, "conversation": conversation_id}
    await tx.execute(_TAKE, due=taken.due, repeat=taken.repeat, **_get_columns(taken.following), **where)


async def send_state(tx: Transaction, schedule: Schedule, state: str) -> bool | None:
    """Stores what has become of the last run; returns `only_if_needed`, None if somebody else has stored it."""
    where = {"id": schedule.id, "run": schedule.last_run_id, "before": schedule.last_state}
    row = await (await tx.execute(_SET_STATE, state=state, **where)).fetchone()
    return row["only_if_needed"] if row else None


async def claim_due(database: Database, now: datetime, most: int) -> list[tuple[str, str]]:
    """Claims schedules that are due, for a minute; returns users and ids."""
    rows = await database.fetch_all(NO_USER, _CLAIM, now=now.astimezone(UTC), most=most)
    return [(row["user_id"], row["id"]) for row in rows]


async def list_changed(database: Database, most: int) -> list[tuple[str, str]]:
    """Lists schedules whose last run has another status than was stored of it."""
    rows = await database.fetch_all(NO_USER, _CHANGED, most=most)
    return [(row["user_id"], row["id"]) for row in rows]
