"""The clock of tasks, of their log and of notes, and time zones. Standard library only: `./todo up` imports it."""

import re
from collections.abc import Callable
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

Clock = Callable[[], datetime]
"""Returns the current time as an aware datetime in UTC."""

LONGEST_ZONE = 64
# How all names of IANA's database are spelled; it excludes other files of that folder, such as `localtime`.
_ZONE = re.compile(r"[A-Z][A-Za-z0-9_+-]*(/[A-Za-z0-9][A-Za-z0-9_+-]*)*")

_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")  # strftime would use the locale of the process


def utc_now() -> datetime:
    return datetime.now(UTC)


def to_utc(moment: datetime) -> datetime:
    """Converts to UTC; a naive value is taken for local time, because ChatKit's SDK creates such values."""
    return moment.astimezone(UTC)


def find_zone(name: str) -> ZoneInfo | None:
    """Returns None for a name that is not in IANA's database."""
    if len(name) > LONGEST_ZONE or not _ZONE.fullmatch(name):
        return None
    try:
        return ZoneInfo(name)
    except (OSError, ValueError, KeyError):  # a folder, a file without a zone, no file
        return None


def choose_zone(name: str | None, default: str) -> ZoneInfo:
    """Returns the zone of this name, else the default one, else UTC."""
    return (find_zone(name) if name else None) or find_zone(default) or ZoneInfo("UTC")


def wall_time(now: datetime, zone: str) -> datetime:
    """Returns the local time in a zone, naive; in UTC for a zone that this machine does not know."""
    return local_time(now, zone).replace(tzinfo=None)


def local_time(now: datetime, zone: str) -> datetime:
    """Returns a time with its zone; a naive value is what a clock in the zone shows."""
    known_zone = find_zone(zone) or UTC
    return now.astimezone(known_zone) if now.tzinfo else now.replace(tzinfo=known_zone)


def render_wall_clock(now: datetime, zone: str) -> str:
    """Renders "Sun 2026-11-22 10:54, Europe/Berlin", in UTC for a zone that this machine does not know."""
    known_zone = find_zone(zone)
    local = now.astimezone(known_zone or UTC)
    return f"{_DAYS[local.weekday()]} {local:%Y-%m-%d %H:%M}, {zone if known_zone else 'UTC'}"
