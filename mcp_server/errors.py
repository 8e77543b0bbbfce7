import logging

import psycopg

from common.database import DatabaseUnavailable, StatementTimeout, UserShareExceeded
from common.tool_server.errors import CallError, TooManyAtOnce, Unavailable, log_internal_error

log = logging.getLogger(__name__)

_NOT_REACHED = "The task database cannot be reached, so nothing was changed. Try again in a moment."
_NOT_CONFIRMED = (
    "The task database went away before it confirmed the change. Call list_tasks to see whether it was made, "
    "before you repeat it."
)


class Conflict(CallError):
    """The present state of the tasks does not allow it."""

    kind = "conflict"


class Limit(CallError):
    """A limit of the user's is reached."""

    kind = "limit"


class TaskNotFound(CallError):
    """There is no task {task_id}. Call list_tasks to see the ids of your tasks."""

    kind = "not_found"


class ForeignUserId(CallError):
    """user_id is not your own, so nothing was changed. Leave it empty."""


class TokenUnchecked(CallError):
    """This server has no MCP_TOKEN_SECRET to check your token with, so nothing was changed. Give it the same AUTH_MODE
    and MCP_TOKEN_SECRET as the backend, and restart it."""


class ScopeMissing(CallError):
    """{sentence}"""


class NothingToUpdate(CallError):
    """Nothing to change was given. Give update_task a new value, such as a title, a due date or a status."""


class TitleOfMany(CallError):
    """A new title is for one task only. Leave out title or also, and rename each task in a call of its own."""


class UndoAlone(CallError):
    """undo cannot be combined with other changes. Give only task_id and also with it."""


class NothingToUndo(Conflict):
    """Task {task_id} has no change of the last 30 days to undo. Call list_tasks to see how it is now."""


class NothingInBatch(Conflict):
    """There is nothing left to undo: nothing was changed, it was undone already, or is more than 30 days old."""


class NothingOverdue(CallError):
    """No task is overdue, so nothing was moved."""

    kind = "not_found"


class ChangedSince(Conflict):
    """Nothing was undone, because of later changes to {tasks}. Undo those first, or change each task by itself."""


class RepeatNeedsDue(CallError):
    """A repeating task needs a due date. Give due as well, or set repeat to none."""


class ReminderNeedsTime(CallError):
    """A reminder comes before a due time, and this task has none. Give a due time, such as Fri 2026-11-27 15:00, or no
    reminder."""


class NotRepeating(CallError):
    """{task} does not repeat, so it has no next date. Give due as a day."""


class RepeatEnded(Conflict):
    """Task {task_id} repeats no more after this date. Complete it or delete it."""


class NextIsOpen(Conflict):
    """Task {task_id} cannot be reopened while the task that follows it, task {next_id}, is open. Undo its completion
    with undo, or delete task {next_id} first."""


class OneIsOpen(Conflict):
    """Only one task of a repeat can be open, so nothing was changed. Complete or delete the open one first, and reopen
    one task at a time."""


class NextIsChanged(Conflict):
    """Task {next_id}, which was added when this one was completed, was changed later. Undo that change first, or delete
    task {next_id}."""


class LabelInvalid(CallError):
    """A label must have 1 to {max_length} characters, not counting a # or @ before it."""


class TooManyLabels(CallError):
    """A task can have at most {most} labels. Remove some with remove_labels."""


class CursorUnknown(CallError):
    """The cursor is not valid. Use the next_cursor of the last list_tasks result, or leave cursor empty."""


class CursorOfOtherList(CallError):
    """The cursor belongs to a list with {query}. Call list_tasks with exactly that, or leave cursor empty."""


class TooManyTasks(Limit):
    """You have {most} tasks, which is the limit. Delete some with delete_task before you add another."""


class TooManyChanges(Limit):
    """Tasks were changed {most} times within a day, which is the limit, so nothing was changed. Try again later."""


class ListTooSlow(Limit):
    """Reading this list takes too long, so it was ended. Ask for less: fewer words in query, or also a status, a label
    or a range of due dates."""


class DateInvalid(CallError):
    """The date cannot be read."""


class DueUnknown(DateInvalid):
    """due "{text}" cannot be read. Write a day (Fri 2026-11-27, today, tomorrow, Friday), a day and a time (Fri
    2026-11-27 15:00), a time (15:00), a day without its time (Fri 2026-11-27 all day), a shift (+3d, -1d, +2w, +1m),
    none or next."""


class RangeUnknown(DateInvalid):
    """{argument} "{text}" cannot be read. Write {words}a day (Fri 2026-11-27, today, tomorrow, Friday), or two days
    with two dots between them, one of which may be left out (2026-11-23..2026-11-29)."""


class RangeInverted(DateInvalid):
    """{first}..{last} ends before it starts. Write the earlier day first."""


class WeekdayOfOtherDay(DateInvalid):
    """{day} is not a {claimed}. Write {this} or {that}."""


class NoSuchDay(DateInvalid):
    """{day} is not in the calendar. Write a day that exists, such as {like}."""


class NoSuchTime(DateInvalid):
    """{time} is not a time of day. Write one from 00:00 to 23:59."""


class DayOutOfRange(DateInvalid):
    """{day} is not within the years {first} to {last}. Write a day within them."""


class ShiftByNothing(DateInvalid):
    """{shift} moves nothing. Write a shift of at least one, such as +1d, or leave due empty to keep the date."""


def explain_error(error: Exception, *, is_committing: bool) -> CallError:
    """Logs an unexpected error and returns one for the caller.

    Neither has the original message: those of the database driver quote values of rows.
    """
    if isinstance(error, UserShareExceeded):
        return TooManyAtOnce()
    if isinstance(error, StatementTimeout):
        return ListTooSlow()
    if isinstance(error, DatabaseUnavailable | psycopg.InterfaceError):
        log.warning("the task database cannot be reached: %s", error)
        return Unavailable(sentence=_NOT_CONFIRMED if is_committing else _NOT_REACHED)
    return log_internal_error(error, service="task service", log=log)
