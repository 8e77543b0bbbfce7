"""Plans that show lists and find tasks."""

from collections.abc import Mapping
from typing import Any

import english
from offline_model import replies
from offline_model.language import slots, words
from offline_model.language.text import Text
from offline_model.plans import Context, Intent, Plan, Steps
from offline_model.plans.lookup import PAGE, find_known_ids, read_list, read_tasks, search
from offline_model.plans.questions import WhichTask, find_by_title, find_by_words, find_similar

_MAX_SHOWN = 2 * PAGE
"""As many tasks as a card holds."""
_MAX_SUGGESTED = 5
_KINDS = {"pending": "open ", "completed": "completed ", "deleted": "deleted "}


def show(where: str = "", **filters: str) -> Plan:
    def plan(intent: Intent, context: Context) -> Steps:
        return _show_list(filters or {"status": _choose_status(set(intent.text.keys))}, where)

    return plan


show_today = show(" due today or overdue", status="pending", due="..today", order="due")


def show_rest(intent: Intent, context: Context) -> Steps:
    turn = next((turn for turn in reversed(context.earlier) if turn.made), None)
    last = turn.steps[-1][-1] if turn and replies.MORE in turn.answer else None
    if last is None or not last.page.next_cursor:
        yield from ()
        return intent.answer
    arguments = {"status": "all", **last.arguments, "cursor": last.page.next_cursor}
    return (yield from _show_list(arguments, is_next=True))


def _show_list(arguments: Mapping[str, Any], where: str = "", *, is_next: bool = False) -> Steps:
    tasks = yield from read_list(arguments, max_tasks=_MAX_SHOWN)
    return replies.count_tasks(tasks, _KINDS.get(arguments["status"], ""), where, is_next=is_next)


def _choose_status(keys: set[str]) -> str:
    is_open, is_done = keys & words.OPEN_WORDS, keys & words.DONE_WORDS
    if is_open or is_done:
        is_both = is_open and is_done and keys & {"and", "or", "both"}
        return "all" if is_both else "pending" if is_open or keys & words.DUE_WORDS else "completed"
    return "all" if keys & words.WHOLE_LIST - words.LIST_NOUNS else "pending"


def show_on_days(intent: Intent, context: Context) -> Steps:
    """Shows what was done or is due; for today also what is overdue, unless the user says "due"."""
    days = slots.find_days_at_end(intent.text) or intent.text
    span = slots.read_days(days) or "today"
    if (set(intent.text.keys) - set(days.keys)) & words.DONE_WORDS and (past := slots.read_past_days(days)):
        tasks = yield from read_list({"status": "completed", "done": past}, max_tasks=_MAX_SHOWN)
        return replies.count_tasks(tasks, "completed ", f" {days.unquote()}{_render_range(past)}")
    if span == english.When(days.now.date()).due and "due" not in intent.text.keys:
        return (yield from show_today(intent, context))
    tasks = yield from read_list({"status": "pending", "due": span, "order": "due"}, max_tasks=_MAX_SHOWN)
    return replies.count_tasks(tasks, "open ", f" due {days.unquote().removeprefix('due ')}{_render_range(span)}")


def show_last_week(intent: Intent, context: Context) -> Steps:
    """Shows what was done on the days that the user names, else since this weekday of last week.

    A schedule that runs each week then leaves out nothing that was done after it ran on that day.
    """
    days = slots.find_days_at_end(intent.text) or intent.text.replace_raw(f"since last {intent.text.now:%A}")
    past = slots.read_past_days(days)
    if past is None:
        return (yield from _show_list({"status": "completed"}))
    tasks = yield from read_list({"status": "completed", "done": past}, max_tasks=_MAX_SHOWN)
    return replies.count_tasks(tasks, "completed ", f" {days.unquote()}{_render_range(past)}")


def _render_range(span: str) -> str:
    return f" ({span.removeprefix('..').replace('..', ' to ')})"


def show_first(intent: Intent, context: Context) -> Steps:
    tasks = yield from read_list({"status": "pending", "order": "priority"}, max_tasks=_MAX_SUGGESTED)
    return replies.suggest_first(tasks) if tasks.tasks else replies.count_tasks(tasks, "open ")


def show_group(intent: Intent, context: Context) -> Steps:
    filters = slots.find_filters(intent.text) or {"label": intent.text.unquote()}
    label = filters.get("label", "")
    if len(label) <= slots.MAX_LABEL_LENGTH:
        page = yield from read_list({"status": "pending", **filters}, max_tasks=_MAX_SHOWN)
        if page.tasks or not label:
            return replies.count_tasks(page, "open ", f' with the label "{label}"' if label else "")
    return (yield from find(intent, context))


def find(intent: Intent, context: Context) -> Steps:
    phrase = _extract_phrase(intent.text)
    if numbers := find_known_ids(phrase, context):
        found = yield from read_tasks(numbers)
    else:
        page = (yield from search([phrase], "all", is_deed=intent.is_deed))[phrase]
        found = (
            find_by_words(phrase, page.tasks) or find_by_title(phrase, page.tasks, is_deed=intent.is_deed) or page.tasks
        )
        if not found and (nearest := find_similar(phrase, page.nearest, is_deed=intent.is_deed)):
            return str(WhichTask(phrase, nearest, is_guess=True))
    return replies.list_found(phrase, found) if found else replies.MISSING.format(kind="task", phrase=phrase)


def _extract_phrase(text: Text) -> str:
    """Removes the words around the searched ones: "show all work items"."""
    named = [at for at, key in enumerate(text.keys) if key not in words.LIST_WORDS] or [0, len(text.keys) - 1]
    return text.part(named[0], named[-1] + 1).unquote()
