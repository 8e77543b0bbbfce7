"""Converts values that several formats write: moments, due dates and repeats."""

from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

from icalendar.prop import vDDDTypes

from common import recurrence
from common.recurrence import LAST_DAY, RepeatInvalid
from common.tool_server.errors import to_printable
from mcp_server.arguments import MAX_REMIND
from mcp_server.errors import LabelInvalid
from mcp_server.imports.field_table import LOST
from mcp_server.imports.file_tasks import UnreadPart
from mcp_server.tasks.dates import FIRST_YEAR
from mcp_server.tasks.patches import normalize_label
from mcp_server.tasks.zones import Now


def check_moment(moment: datetime, text: str) -> datetime:
    """Raises `UnreadPart` for a moment outside the years of tasks."""
    # A day less at each end, as the moment may be on another day in UTC.
    if not datetime(FIRST_YEAR, 1, 2) <= moment.replace(tzinfo=None) < datetime(LAST_DAY.year, 1, 1):
        raise UnreadPart(
            f"{to_printable(text)} is not within the years {FIRST_YEAR} to {LAST_DAY.year - 1}. Write one within them."
        )
    return moment


def convert_due(due: date, now: Now) -> date:
    """Converts an instant to the user's local time; a day and a local time stay as they are."""
    if not isinstance(due, datetime) or due.tzinfo is None:
        return due
    return check_moment(due, str(due)).astimezone(now.zone).replace(tzinfo=None)


def render_due(due: date | None) -> str | None:
    """Renders the argument of `add_task` for a day or a local time."""
    if due is None:
        return None
    return f"{due:%Y-%m-%d %H:%M}" if isinstance(due, datetime) else due.isoformat()


def read_repeat(rule: str, due: date | None, zone: ZoneInfo) -> object:
    """Returns the argument of `add_task`, or LOST for a rule that tasks cannot have, as all without a due date."""
    if not rule:
        return None
    if due is None:
        return LOST
    try:
        time = due.time() if isinstance(due, datetime) else None
        day = due.date() if isinstance(due, datetime) else due
        return str(recurrence.read_rule(rule, day, time, zone))
    except RepeatInvalid:
        return LOST


def read_reminder(trigger: str, due: date | None) -> object:
    """Returns the argument `remind` of `add_task` for a trigger of RFC 5545, such as -PT15M.

    LOST for one that a task cannot have: at an instant, after the task is due, and on a day without a time.
    """
    try:
        after = vDDDTypes.from_ical(trigger)
    except ValueError:
        return LOST
    if not isinstance(after, timedelta) or not isinstance(due, datetime):
        return LOST
    minutes, rest = divmod(-after, timedelta(minutes=1))
    return LOST if rest or not 0 <= minutes <= MAX_REMIND else minutes


def is_label(text: str) -> bool:
    try:
        normalize_label(text)
    except LabelInvalid:
        return False
    return True
