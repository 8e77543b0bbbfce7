"""What "now" and "here" mean to people's tasks, to the log of changes and to notes; all else keeps the real clock."""

import re
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Annotated, Any
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, BeforeValidator, Field
from pydantic_core import PydanticCustomError
from pydantic_settings import BaseSettings

from common.environment import CONFIG

Clock = Callable[[], datetime]
"""What it is now; aware, in UTC."""

LONGEST_ZONE = 64
_FIRST_YEAR, _LAST_YEAR = 1970, 2200  # of a clock that is set: dates before and after it can be computed
# As all names of IANA's database are spelled, and no file beside them, such as `localtime`.
_ZONE = re.compile(r"[A-Z][A-Za-z0-9_+-]*(/[A-Za-z0-9][A-Za-z0-9_+-]*)*")

_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")  # whatever language the process was started in


def utc_now() -> datetime:
    return datetime.now(UTC)


def to_utc(moment: datetime) -> datetime:
    """The same moment in UTC; a naive value is local time, as ChatKit's SDK makes them."""
    return moment.astimezone(UTC)


def running_from(instant: datetime, *, real: Clock = utc_now) -> Clock:
    """A clock that shows the instant now, and runs on from there."""
    ahead = instant - real()
    return lambda: (real() + ahead).astimezone(UTC)


def find_zone(name: str) -> ZoneInfo | None:
    """The zone of this name in IANA's database, or None."""
    if len(name) > LONGEST_ZONE or not _ZONE.fullmatch(name):
        return None
    try:
        return ZoneInfo(name)
    except (OSError, ValueError, KeyError):  # a folder, no zone in it, nothing there
        return None


def wall_time(now: datetime, zone: str) -> datetime:
    """What clocks show in a zone, naive; in UTC for one that this machine does not know."""
    return now.astimezone(find_zone(zone) or UTC).replace(tzinfo=None)


def wall_clock(now: datetime, zone: str) -> str:
    """`Sun 2026-11-22 10:54, Europe/Berlin`; in UTC, and saying so, for a zone that this machine does not know."""
    known = find_zone(zone)
    here = now.astimezone(known or UTC)
    return f"{_DAYS[here.weekday()]} {here:%Y-%m-%d %H:%M}, {zone if known else 'UTC'}"


def _known(zone: str) -> str:
    if find_zone(zone) is None:
        raise PydanticCustomError("setting", "must be the name of a time zone, such as Europe/Berlin")
    return zone


def _read_instant(given: Any) -> Any:
    """An ISO instant; a date alone, a time without its offset or a number would leave open which one it is."""
    if not isinstance(given, str):
        return given
    with suppress(ValueError):
        instant = datetime.fromisoformat(given)
        if instant.tzinfo is not None and _FIRST_YEAR <= instant.year <= _LAST_YEAR:
            return instant
    raise PydanticCustomError("setting", "must be a time in the years 1970 to 2200, such as 2026-11-22T23:50:00+01:00")


TimeZone = Annotated[str, AfterValidator(_known)]


class NowSettings(BaseSettings):
    """What a service takes for now, and where it takes people to be who do not say."""

    model_config = CONFIG

    time_zone: TimeZone = Field(default_factory=lambda: "UTC")  # not shown as the default: ./todo up has another
    """The time zone of users whose client does not send one, such as Europe/Berlin; the page always sends it. Default:
    UTC, or with ./todo up the zone of this machine.
    """
    test_now: Annotated[datetime | None, BeforeValidator(_read_instant)] = None
    """For tests: the time at which the clock of tasks and notes starts, such as 2026-11-22T23:50:00+01:00. A service
    that other machines can reach does not start with it.
    """

    def clock(self) -> Clock:
        """To be asked for once: a clock that is set begins to run here."""
        return utc_now if self.test_now is None else running_from(self.test_now)
