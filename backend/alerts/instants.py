"""When a user is notified: instants of wall times in their zone, with the time zone database of this machine.

A wall time that a change of the clock repeats is its first occurrence; one that is skipped counts with the offset from
before the change (RFC 5545, section 3.3.5).
"""

from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from common.recurrence import to_instant

_DAY = timedelta(days=1)


def find_alert(due: datetime, minutes: int, *, since: datetime, is_set: bool) -> datetime | None:
    """Returns when a task alerts that was changed at `since`; None for never.

    An instant that was past then does not alert, unless it was still to come before the change (`is_set`), as in a zone
    in which it is later. A minute that has begun is not past.
    """
    since = since.replace(second=0, microsecond=0)
    if minutes < 0:
        return None
    if (reminder := due - timedelta(minutes=minutes)) >= since:
        return reminder
    if due >= since:
        return due
    return since if is_set else None


def find_digest(at: time, zone: ZoneInfo, *, since: datetime, last_day: date | None) -> tuple[datetime, date]:
    """Returns when the next digest is sent, and its day, which comes after that of the last one."""
    day = since.astimezone(zone).date()
    if last_day is not None and last_day <= day + _DAY:  # a later one was of a clock that was ahead
        day = max(day, last_day + _DAY)
    while (instant := to_instant(day, at, zone)) < since:
        day += _DAY
    return instant, day


def find_end_of_quiet(now: datetime, zone: ZoneInfo, quiet_from: time | None, until: time | None) -> datetime | None:
    """Returns when the quiet hours end that it is in `now`; None outside of them."""
    if quiet_from is None or until is None:
        return None
    local = now.astimezone(zone)
    wall = local.time()
    is_quiet = quiet_from <= wall < until if quiet_from <= until else wall >= quiet_from or wall < until
    if not is_quiet:
        return None
    ends = [
        datetime.combine(local.date() + later * _DAY, until, zone).replace(fold=fold).astimezone(UTC)
        for later in (0, 1)
        for fold in (0, 1)
    ]
    return min(end for end in ends if end > now)
