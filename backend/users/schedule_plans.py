"""What a schedule does, and when. Without SQL: the table of tools describes calls before there is a database."""

from dataclasses import dataclass
from datetime import datetime, time
from zoneinfo import ZoneInfo

from backend.errors import InvalidRequest
from common import recurrence
from common.recurrence import Occurrence, RepeatInvalid
from common.repeats import describe_repeat
from common.text import is_visible

MAX_TEXT = 1_000


@dataclass(frozen=True, slots=True)
class Plan:
    """What a schedule does, and when; its rule is complete."""

    text: str
    repeat: str
    at: time
    first: Occurrence

    def describe(self) -> str:
        return describe_times(self.repeat, self.at)


def describe_times(repeat: str, at: time) -> str:
    """Describes FREQ=WEEKLY;BYDAY=FR and 16:00 as "every Friday at 16:00"."""
    return f"{describe_repeat(repeat)} at {at:%H:%M}"


def read_plan(text: str, repeat: str, at: str, *, now: datetime, zone: ZoneInfo) -> Plan:
    """Checks what a schedule is to be, and finds its first occurrence. Raises `InvalidRequest`."""
    text = text.strip()
    if not is_visible(text) or len(text) > MAX_TEXT:
        raise InvalidRequest(f"text must say in up to {MAX_TEXT:,} characters what is to be done each time.")
    at_time = _read_time(at)
    try:
        rule = recurrence.read_rule(repeat, now.astimezone(zone).date(), at_time, zone)
    except RepeatInvalid as error:
        raise InvalidRequest(str(error)) from None
    if rule.from_done:
        raise InvalidRequest("repeat has FROM=DONE, which only tasks can have. Leave it out.")
    first = recurrence.find_first_occurrence(rule, at_time, zone, after=now)
    if first is None:
        raise InvalidRequest("repeat has no time that is still to come. Write a later UNTIL.")
    return Plan(text, str(rule), at_time, first)


def _read_time(text: str) -> time:
    try:
        hour, minute = map(int, text.split(":"))
        return time(hour, minute)
    except ValueError:
        raise InvalidRequest("time must be a local time from 00:00 to 23:59, such as 16:00.") from None
