"""Many tasks that are meant together: "everything due today", "all my overdue tasks", "all work tasks"."""

from collections.abc import Generator, Mapping

from offline_model.rules import dates, lookup
from offline_model.rules.intents import Calls, Results, Stopped
from offline_model.rules.language.pattern import Pattern, Reading
from offline_model.rules.language.text import Text
from offline_model.rules.language.vocabulary import LIST_WORDS
from offline_model.rules.lookup import Tasks
from offline_model.rules.sentences import NO_MEMBERS

LONGEST_LABEL = 40
Filters = Mapping[str, str]

_PATTERNS = [
    (Pattern(source), due)
    for source, due in (
        ("[all] [of] [my|the] overdue {things}", "overdue"),
        ("(everything|all|anything|all [of] [my|the] {things}) [{that_is}] overdue", "overdue"),
        ("(everything|all|anything|whatever) [{that_is}] [due|on|from|planned for] <days>", ""),
        ("[all] [of] [my|the] {things} [{that_is}] (due|on|from|planned for|of) <days>", ""),
        ("[all] [of] [my|the] <days> ('s) {things}", ""),
        ("(today|tomorrow) 's {things}", ""),
        ("all [of] [my|the] {things} (with the label|labelled|labeled|tagged [with|as]) <label>", ""),
        ("everything (with the label|labelled|labeled|tagged [with|as]) <label>", ""),
        ("all [of] [my|the] <label> {things}", ""),
    )
]


def filters_of(text: Text) -> Filters | None:
    """The arguments of `list_tasks` that show them; None if it means no such group."""
    for pattern, due in _PATTERNS:
        for reading in pattern.readings(text):
            if filters := _filters(text, reading, due):
                return filters
    return None


def is_label(text: Text) -> bool:
    """Whether it may be one: "shopping", from "all the shopping", but not "tasks" or a number."""
    is_short = len(text.keys) <= 3 and len(text.shown()) <= LONGEST_LABEL
    return is_short and LIST_WORDS.isdisjoint(text.keys) and "#" not in text.keys


def _filters(text: Text, reading: Reading, due: str) -> Filters | None:
    if "label" in reading:
        return {"label": reading["label"].shown()} if is_label(reading["label"]) else None
    days = due or dates.range_of(reading["days"] if reading else text.part(0, 1))
    return {"due": days} if days else None


def members(text: Text) -> Generator[Calls, Results, Tasks]:
    """The open ones of a group, or with a label, or with that word where none has the label; if none, the plan ends."""
    filters = filters_of(text) or {"label": text.shown()}
    tasks = yield from lookup.read({"status": "pending", **filters})
    if not tasks.items and (label := filters.get("label")):
        found = yield from lookup.search([label], "pending")
        tasks = Tasks(found[label].having(label))
    if not tasks.items:
        raise Stopped(NO_MEMBERS.format(group=text.shown()))
    return tasks
