"""Plans that change fields of tasks."""

from collections.abc import Callable, Sequence
from typing import Any

from offline_model.rules import naming, sentences, telling
from offline_model.rules.intents import Intent, Known, Plan, Steps, several
from offline_model.rules.language.text import Text
from offline_model.rules.plans import groups

_NAMING_GAPS = ("task", "subject", "numbers")


def update(
    field: str,
    value_of: Callable[[Text], Any] = Text.shown,
    *,
    empty: Any = "",
    statuses: Sequence[str] = naming.FIRST_OPEN,
) -> Plan:
    """The plan that gives a task's field the value, or `empty` where the pattern has no value."""

    def plan(intent: Intent, known: Known) -> Steps:
        """Each reading is a name and a value: "go to work to go home" can be parted in two places."""
        given = [
            next((text for gap, text in reading.items() if gap not in _NAMING_GAPS), None)
            for reading in intent.readings
        ]
        values = dict(zip(intent.phrases, given, strict=True))
        meant = yield from naming.named(intent.phrases, known, statuses=statuses)
        if meant.missing:
            return "\n\n".join([*([sentences.NONE_CHANGED] if meant.ids else []), *meant.not_found()])
        text = values[meant.name]
        fields = _fields(field, value_of(text) if text else empty)
        if fields.get("due") == "today" and "repeat" in fields and all(task.due for task in meant.found):
            del fields["due"]  # "every 3 weeks" tells no day
        results = yield several("update_task", meant.ids, **fields)
        return telling.told(intent.answer, results, value=text.shown() if text else "")

    return plan


def update_group(field: str, value_of: Callable[[Text], Any] = Text.shown, *, empty: Any = "") -> Plan:
    """The same for all tasks of a group."""

    def plan(intent: Intent, known: Known) -> Steps:
        reading = next(reading for reading in intent.readings if groups.filters_of(reading["group"]))
        text = next((text for gap, text in reading.items() if gap != "group"), None)
        tasks = yield from groups.members(reading["group"])
        fields = _fields(field, value_of(text) if text else empty)
        results = yield several("update_task", [task.id for task in tasks.items], **fields)
        return telling.told(intent.answer, results, value=text.shown() if text else "")

    return plan


def _fields(field: str, value: Any) -> dict[str, Any]:
    """A value may be several fields, as "every Monday" tells a date and how it repeats."""
    return dict(value) if isinstance(value, dict) else {field: value}
