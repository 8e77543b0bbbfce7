"""Plans that show lists, or tasks that are looked for."""

from collections.abc import Mapping
from typing import Any

from offline_model.conversation import Task
from offline_model.rules import dates, lookup, sentences, telling
from offline_model.rules.intents import Intent, Known, Plan, Steps
from offline_model.rules.language import vocabulary
from offline_model.rules.plans import groups
from offline_model.rules.plans.talking import say
from offline_model.rules.questions import Question

_SHOWN = 2 * lookup.PAGE
"""As many tasks as a list in the chat holds."""
_FIRST = 5
_KINDS = {"pending": "open ", "completed": "completed ", "deleted": "deleted "}
_NOTHING = {
    "pending": sentences.NOTHING_LEFT,
    "completed": sentences.NONE_DONE,
    "deleted": "You have deleted nothing in the last 30 days.",
}


def show(intent: Intent, known: Known) -> Steps:
    return _list({"status": _status(set(intent.texts[0].keys))})


def show_only(where: str, **filters: str) -> Plan:
    """The open tasks of a filter, such as those without a date."""

    def plan(intent: Intent, known: Known) -> Steps:
        return _list({"status": "pending", **filters}, where)

    return plan


def show_deleted(intent: Intent, known: Known) -> Steps:
    return _list({"status": "deleted"})


def show_rest(intent: Intent, known: Known) -> Steps:
    return _list(known.rest, before=True) if known.rest else say(intent, known)


def _list(arguments: Mapping[str, Any], where: str = "", *, before: bool = False) -> Steps:
    tasks = yield from lookup.read(arguments, most=_SHOWN)
    status = arguments["status"]
    if tasks.items:
        return telling.listing(tasks, _KINDS.get(status, ""), where, before=before)
    return f"You have no tasks{where}." if where else _NOTHING.get(status, "Your list is empty.")


def _status(words: set[str]) -> str:
    """Which tasks a question is about, all of whose words are about the list."""
    is_open, is_done = words & vocabulary.OPEN_WORDS, words & vocabulary.DONE_WORDS
    if is_open or is_done:
        is_both = is_open and is_done and words & {"and", "or", "both"}
        return "all" if is_both else "pending" if is_open or words & vocabulary.DUE_WORDS else "completed"
    return "all" if words & vocabulary.WHOLE_LIST - vocabulary.LIST_NOUNS else "pending"


def show_due(intent: Intent, known: Known) -> Steps:
    """On the days that were named; without them the answer says which."""
    days = dates.days_at_end(intent.texts[0]) if intent.readings[0] else None
    due = (dates.range_of(days) if days else None) or intent.answer
    tasks = yield from lookup.read({"status": "pending", "due": due, "order": "due"}, most=_SHOWN)
    if due == "overdue":
        return telling.due(tasks, due)
    return telling.due(
        tasks, f"due {days.shown().removeprefix('due ') if days else ''}".strip() + telling.span(due, tasks.now)
    )


def show_today(intent: Intent, known: Known) -> Steps:
    """With what is overdue: that is for today, too."""
    tasks = yield from lookup.read({"status": "pending", "due": "..today", "order": "due"}, most=_SHOWN)
    return telling.today(tasks)


def show_done(intent: Intent, known: Known) -> Steps:
    days = dates.days_at_end(intent.texts[0])
    span = dates.past_of(days) or "today"
    tasks = yield from lookup.read({"status": "completed", "done": span}, most=_SHOWN)
    return telling.done(tasks, f"{days.shown()}{telling.span(span, tasks.now)}")


def show_first(intent: Intent, known: Known) -> Steps:
    tasks = yield from lookup.read({"status": "pending", "order": "priority"}, limit=_FIRST, most=_FIRST)
    return telling.first(tasks) if tasks.items else sentences.NOTHING_LEFT


def show_label(intent: Intent, known: Known) -> Steps:
    """The open tasks with a label, or what has that word where none has the label."""
    label = intent.texts[0].shown()
    if len(label) <= groups.LONGEST_LABEL:
        tasks = yield from lookup.read({"status": "pending", "label": label}, most=_SHOWN)
        if tasks.items:
            return telling.listing(tasks, "open ", f' with the label "{label}"')
    return (yield from find(intent, known))


def show_group(intent: Intent, known: Known) -> Steps:
    return telling.listing((yield from groups.members(intent.texts[0])), "open ")


def find(intent: Intent, known: Known) -> Steps:
    """Without the words around it that ask for it: "show all work items"."""
    keys = intent.texts[0].keys
    meant = [at for at, key in enumerate(keys) if key not in vocabulary.LIST_WORDS] or [0, len(keys) - 1]
    phrase = intent.texts[0].part(meant[0], meant[-1] + 1).shown()
    numbers = lookup.known_ids(phrase, known)
    if numbers:
        tasks = yield from lookup.read({"status": "all"})
        found = [task for task in tasks.items if task.id in numbers]
        return (
            telling.found(phrase, found, tasks.now) if found else sentences.MISSING.format(among="task", phrase=phrase)
        )
    tasks = (yield from lookup.search([phrase], "all", told=intent.told))[phrase]
    found = tasks.having(phrase) or tasks.fitting(phrase, told=intent.told) or tasks.items
    if not found and (similar := tasks.similar(phrase, told=intent.told)):
        options = [Task(id=task.id, title=task.title) for task in similar]
        return str(Question(phrase, options, is_guess=True))
    return telling.found(phrase, found, tasks.now) if found else sentences.MISSING.format(among="task", phrase=phrase)
