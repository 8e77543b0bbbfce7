import logging

import psycopg
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from service.tool_server.refusals import Refusal, Unavailable, internal_error

log = logging.getLogger(__name__)

_NOT_REACHED = "The task database cannot be reached right now; nothing was changed, try again in a moment."
_NOT_CONFIRMED = (
    "The task database went away before it confirmed the change: call list_tasks to see whether it was made "
    "before you repeat it."
)


class Conflict(Refusal):
    """What there is now does not allow it."""

    kind = "conflict"


class Limit(Refusal):
    """There may be no more of it."""

    kind = "limit"


class TaskNotFound(Refusal):
    """There is no task {task_id}: call list_tasks to see the numbers of your tasks."""

    kind = "not_found"


class ForeignUserId(Refusal):
    """user_id must be left out or be your own: nothing was changed."""


class NothingToUpdate(Refusal):
    """Nothing was given to change: give update_task what is to be new, such as a title, a due date or a status."""


class TitleOfMany(Refusal):
    """title is one task's own: leave it or also out, and give each task its title in a call of its own."""


class UndoAlone(Refusal):
    """undo takes back the last change and stands alone: leave out everything but task_id and also."""


class NothingToUndo(Conflict):
    """There is no change of task {task_id} within 30 days that could be taken back."""


class NothingInBatch(Conflict):
    """There is nothing to take back: it was taken back already, or is older than 30 days."""


class ChangedSince(Conflict):
    """Nothing was taken back, because it was changed since: {tasks}. Take that back first, or change each task by
    itself."""


class RepeatNeedsDue(Refusal):
    """A task that repeats needs a date: give due, too, or end the repeat with repeat none."""


class NotRepeating(Refusal):
    """{task} does not repeat, so it has no next date: give due as a day."""


class RepeatEnded(Conflict):
    """Task {task_id} has no date after this one: complete it, or delete it."""


class NextIsOpen(Conflict):
    """Task {task_id} cannot be opened again: the one that followed it, task {next_id}, is open. Undo its completion
    with undo, or delete task {next_id} first."""


class OneIsOpen(Conflict):
    """Of the tasks of one repeat only one can be open: complete or delete the one that is, and open one at a time;
    nothing was changed."""


class NextIsChanged(Conflict):
    """Task {next_id}, which followed when this one was completed, was changed since: undo that first, or delete it."""


class LabelInvalid(Refusal):
    """A label must have 1 to {longest} characters, not counting a # or @ before it."""


class TooManyLabels(Refusal):
    """A task can have {most} labels at most: remove some with remove_labels."""


class CursorUnknown(Refusal):
    """cursor is none that list_tasks has returned: call list_tasks without cursor to get the first page."""


class CursorOfOtherList(Refusal):
    """cursor belongs to a list with {wish}: call list_tasks with that and nothing else, or without cursor."""


class KeyUsedOtherwise(Conflict):
    """This idempotency key belongs to an earlier call with other arguments: send each new call with a new key."""


class TooManyTasks(Limit):
    """There are {most} tasks, which is the most: delete some with delete_task before you add another."""


class TooManyChanges(Limit):
    """The list was changed {most} times in a day, which is the most, so nothing was changed: go on later."""


class DateInvalid(Refusal):
    """The date cannot be read."""


class DueUnknown(DateInvalid):
    """due "{text}" is not understood: write a day (Fri 2026-11-27, today, tomorrow, Friday), a day and a time
    (Fri 2026-11-27 15:00), a time (15:00), a day without its time (Fri 2026-11-27 all day), a shift (+3d, -1d, +2w,
    +1m), none or next."""


class RangeUnknown(DateInvalid):
    """{argument} "{text}" is not understood: write {words}a day (Fri 2026-11-27, today, tomorrow, Friday), or two days
    with two dots between them, of which one may be left out (2026-11-23..2026-11-29)."""


class RangeInverted(DateInvalid):
    """{first}..{last} ends before it begins: write the earlier day first."""


class WeekdayOfOtherDay(DateInvalid):
    """{day} is no {claimed}: write {this} or {that}, whichever is meant."""


class NoSuchDay(DateInvalid):
    """{day} is no day of the calendar: write one that exists, such as {like}."""


class NoSuchTime(DateInvalid):
    """{time} is no time of day: write one from 00:00 to 23:59."""


class DayOutOfRange(DateInvalid):
    """{day} lies outside the years {first} to {last}: write a day within them."""


class ShiftByNothing(DateInvalid):
    """{shift} moves nothing: write a shift of one or more, such as +1d, or leave due out to keep the date."""


class RepeatInvalid(Refusal):
    """repeat {problem}: write FREQ=DAILY, WEEKLY, MONTHLY or YEARLY and what else it needs of INTERVAL (1 to 999),
    BYDAY (MO to SU; with 1 to 5 or -1 before them for MONTHLY), BYMONTHDAY (1 to 31 or -1), BYMONTH (1 to 12, for
    YEARLY), COUNT (1 to 999) or UNTIL (20271231), and FROM=DONE, as in FREQ=WEEKLY;BYDAY=MO,TH."""


def explained(error: Exception, *, committing: bool) -> Refusal:
    """The sentence for a failure that is not the caller's doing; the details go to the log.

    Neither carries the error's own message: a driver's messages quote the values of the rows.
    """
    driver_error = error.orig if isinstance(error, DBAPIError) else error
    if isinstance(driver_error, psycopg.OperationalError | psycopg.InterfaceError | PoolTimeout | OSError):
        log.warning("the task database cannot be reached: %s", type(driver_error).__name__)
        return Unavailable(sentence=_NOT_CONFIRMED if committing else _NOT_REACHED)
    return internal_error(error, cause=driver_error, service="task service", log=log)
