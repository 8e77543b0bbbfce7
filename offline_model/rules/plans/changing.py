"""Plans that change fields of tasks."""

import re
from collections.abc import Callable, Generator, Sequence
from typing import Any

from offline_model.conversation import Task
from offline_model.rules import dates, lookup, naming, sentences, telling
from offline_model.rules.intents import Calls, Intent, Known, Plan, Results, Steps, ToolCall, several
from offline_model.rules.language.text import Text
from offline_model.rules.plans import groups

_BARE_HOUR = re.compile(r"(?:at )?\d\d?")
_CLOCK = re.compile(r"\d\d:\d\d")
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
        if text and "due" in fields:
            fields["due"] = _nearest_hour(text, fields["due"], meant.found)
        tells_day = "BY" in fields.get("repeat", "") or (text is not None and " start" in text.raw)
        if "repeat" in fields and not tells_day and all(task.due for task in meant.found):
            fields.pop("due", None)  # "every 3 weeks" tells no day
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


def correct_last(intent: Intent, known: Known) -> Steps:
    """Gives the tasks that the last answer added or changed another date: "no, I meant Wednesday"."""
    changed = [result for step in (known.earlier[-1].steps if known.earlier else []) for result in step]
    tasks = [task for one in changed if one.tool in ("add_task", "update_task") for task in one.page.tasks]
    if not tasks:
        return sentences.NO_SUBJECT
    text = intent.texts[0]
    fields = dates.corrected(text) or {}
    fields["due"] = _nearest_hour(text, fields["due"], tasks)
    results = yield several("update_task", list(dict.fromkeys(task.id for task in tasks)), **fields)
    return telling.told(intent.answer, results)


def schedule(intent: Intent, known: Known) -> Steps:
    """Moves the task of that title or, if there is none, adds it: "schedule call mum for Saturday"."""
    reading = intent.readings[0]
    if not (yield from _is_on_list(reading["task"])):
        title = reading["task"].shown()
        results = yield (ToolCall("add_task", {"title": title, **_fields("due", dates.read(reading["date"]))}),)
        return telling.told(sentences.ADDED, results)
    return (yield from update("due", dates.new_due)(intent, known))


def replace(intent: Intent, known: Known) -> Steps:
    """Renames the task of that title or, if there is none, adds an errand: "replace milk with oat milk"."""
    reading = intent.readings[0]
    if not (yield from _is_on_list(reading["task"])):
        title = f"replace {reading['task'].shown()} with {reading['value'].shown()}"
        return telling.told(sentences.ADDED, (yield (ToolCall("add_task", {"title": title}),)))
    return (yield from update("title")(intent, known))


def _is_on_list(text: Text) -> Generator[Calls, Results, bool]:
    phrase = text.shown()
    return bool((yield from lookup.search([phrase], "pending"))[phrase].fitting(phrase))


def _nearest_hour(text: Text, due: str, tasks: Sequence[Task]) -> str:
    """Of "7" the morning or the evening, whichever is nearer to when the tasks are due now."""
    times = [task.due[-5:] for task in tasks if task.due and ":" in task.due]
    if not times or not _BARE_HOUR.fullmatch(text.raw.strip(" ?!.,")) or not _CLOCK.fullmatch(due):
        return due
    hour, now = int(due[:2]) % 12, int(times[0][:2])
    return f"{min((hour, hour + 12), key=lambda at: abs(at - now)):02}:{due[3:]}"


def _fields(field: str, value: Any) -> dict[str, Any]:
    """A value may be several fields, as "every Monday" tells a date and how it repeats."""
    return dict(value) if isinstance(value, dict) else {field: value}
