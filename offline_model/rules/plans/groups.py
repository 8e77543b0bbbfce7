"""Many tasks that are meant together: "everything due today", "all my overdue tasks", "all work tasks"."""

from collections.abc import Generator, Mapping

from offline_model.rules import lookup
from offline_model.rules.intents import Calls, Results
from offline_model.rules.language import dates
from offline_model.rules.language.pattern import Pattern, Reading
from offline_model.rules.language.text import Text
from offline_model.rules.language.vocabulary import LIST_WORDS
from offline_model.rules.lookup import Tasks

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


def _filters(text: Text, reading: Reading, due: str) -> Filters | None:
    if "label" in reading:
        label = reading["label"]
        is_label = len(label.keys) <= 2 and LIST_WORDS.isdisjoint(label.keys) and label.keys != ["#"]
        return {"label": label.shown()} if is_label else None
    days = due or (dates.range_of(reading["days"]) if reading else text.keys[0])
    return {"due": days} if days else None


def members(filters: Filters) -> Generator[Calls, Results, Tasks]:
    """The open ones; those that have a label's words, where none has the label."""
    tasks = yield from lookup.read({"status": "pending", **filters})
    if "label" in filters and not tasks.items:
        tasks = (yield from lookup.search([filters["label"]], "pending"))[filters["label"]]
    return tasks
