"""What is done about a wish: the plans, the second column of the table of wishes.

A plan is given what was understood and what earlier turns tell. It yields the tool calls of a step, is sent their
results, and returns what to say: as a rule `sentences.told`, which fills the wish's answer in from the results.
"""

from collections.abc import Callable
from typing import Any

from offline_model.rules import lookup, sentences
from offline_model.rules.language import dates, vocabulary
from offline_model.rules.language.pattern import Reading
from offline_model.rules.language.text import Text, parts_of
from offline_model.rules.language.words import tokens
from offline_model.rules.lookup import Calls, Intent, Known, Steps, Stopped, Tasks, ToolCall
from offline_model.rules.new_tasks import new_tasks
from offline_model.rules.questions import one_of

Plan = Callable[[Intent, Known], Steps]

MOST_AT_ONCE = 10
"""So many done tasks are deleted without a question."""
_SHOWN = 2 * lookup.PAGE
"""As many tasks as a list in the chat holds."""


def say(intent: Intent, known: Known) -> Steps:
    yield from ()
    return intent.answer


def add(intent: Intent, known: Known) -> Steps:
    tasks = [task for reading in intent.readings for task in _added(reading)]
    answer = sentences.with_date(intent.answer) if any("due" in task for task in tasks) else intent.answer
    return (yield from _change(_calls("add_task", tasks), answer)) if tasks else sentences.NO_TITLE


def _added(reading: Reading) -> list[dict[str, str]]:
    """Of "remind me tomorrow to call mum": "call mum", with that date."""
    if "title" in reading:
        return [{"title": reading["title"].shown()}]
    text = next(reversed(reading.values()))
    if start := dates.leading(text) if set(reading) & {"dated errand"} else None:
        _, errand = start
        return new_tasks(errand, text.part(0, len(text.keys) - len(errand.keys)).raw.strip(" ,:"))
    return new_tasks(text, reading["when"].raw if "when" in reading else "")


def complete(intent: Intent, known: Known) -> Steps:
    """A task that is not among the open ones may be done already, or no task at all."""
    phrase, ids = _named(intent, known)
    tasks = yield from lookup.read("pending")
    ids, missing = (ids, []) if ids else _targets(phrase, tasks, known, told=intent.told)
    said: list[str] = []
    if ids:
        results = yield _calls("complete_task", [{"task_id": id} for id in ids])
        pending = {task.id for task in tasks.items}
        done = [task for one in results for task in one.page.tasks if not (tasks.cursor or task.id in pending)]
        others = [one for one in results if one.error or one.page.tasks[0] not in done]
        said = [sentences.already(done), sentences.told(intent.answer, others)]
    if missing:
        completed = yield from lookup.read("completed")
        for name in missing:
            done = completed.fitting(name, told=intent.told)
            said.append(sentences.already(done) or tasks.missing(name, "open task"))
    return "\n\n".join(filter(None, said))


def delete(intent: Intent, known: Known) -> Steps:
    phrase, ids = _named(intent, known)
    if not ids:
        tasks = yield from lookup.read("all")
        ids, missing = _targets(phrase, tasks, known)
        if missing:
            return " ".join([*map(tasks.missing, missing), *([sentences.NONE_DELETED] if ids else [])])
    return (yield from _change(_calls("delete_task", [{"task_id": id} for id in ids]), intent.answer))


def update(field: str, value_of: Callable[[Text], Any] = Text.shown, *, empty: Any = "") -> Plan:
    """The plan that gives a task's field the value, or `empty` where the pattern has no value."""

    def plan(intent: Intent, known: Known) -> Steps:
        """Each reading is a name and a value: "go to work to go home" can be parted in two places."""
        given = [
            next((text for gap, text in reading.items() if gap not in ("task", "numbers")), None)
            for reading in intent.readings
        ]
        texts = [value_of(text) if text else empty for text in given]
        values = dict(zip(intent.phrases, texts, strict=True))
        names = sorted(values, key=len)
        ids, name = next(((ids, name) for name in names if (ids := lookup.known_ids(name, known))), ([], ""))
        if not ids:
            tasks = yield from lookup.read("all")
            hits = [name for name in names if tasks.fitting(name)]
            if not hits:
                return tasks.missing(names[0])
            exact = [name for name in hits if tasks.fitting(name)[0].title.casefold() == name.casefold()]
            name = (exact or hits)[0]
            ids = [one_of(name, tasks.fitting(name))]
        calls = _calls("update_task", [{"task_id": id, **_fields(field, values[name])} for id in ids])
        return (yield from _change(calls, intent.answer))

    return plan


def _fields(field: str, value: Any) -> dict[str, Any]:
    """A value may be several fields, as "every Monday" tells a date and how it repeats."""
    return value if isinstance(value, dict) else {field: value}


def delete_done(intent: Intent, known: Known) -> Steps:
    """More than a few only when it is said so: a wish with an answer says so."""
    tasks = yield from lookup.read("completed")
    if not tasks.items:
        return sentences.listing("completed", tasks.items, more=False)
    if len(tasks.items) > MOST_AT_ONCE and intent.answer == sentences.DELETED:
        return sentences.ASK_DELETE_DONE.format(count=f"{len(tasks.items)}{'+' if tasks.cursor else ''}")
    calls = lookup.several("delete_task", [task.id for task in tasks.items])
    return (yield from _change(calls, sentences.DELETED_DONE))


def show(intent: Intent, known: Known) -> Steps:
    return _list(_status(set(intent.texts[0].keys)))


def show_rest(intent: Intent, known: Known) -> Steps:
    return _list(*known.rest) if known.rest else say(intent, known)


def show_due(intent: Intent, known: Known) -> Steps:
    """Without days in the pattern what is overdue, and with "due" alone all that has a date."""
    days = intent.texts[0] if intent.readings[0] else None
    due = (dates.range_of(days) if days else None) or intent.answer
    tasks = yield from lookup.read("pending", due=due, order="due")
    return sentences.due(tasks.items, days.shown() if days else "", overdue=due == "overdue")


def _list(status: str, cursor: str | None = None) -> Steps:
    tasks = yield from lookup.read(status, cursor, most=_SHOWN)
    return sentences.listing(status, tasks.items, more=bool(tasks.cursor), before=bool(cursor))


def _status(words: set[str]) -> str:
    """Which tasks a question is about, all of whose words are about the list."""
    is_open, is_done = words & vocabulary.OPEN_WORDS, words & vocabulary.DONE_WORDS
    if is_open or is_done:
        is_both = is_open and is_done and words & {"and", "or", "both"}
        return "all" if is_both else "pending" if is_open or words & vocabulary.DUE_WORDS else "completed"
    return "all" if words & vocabulary.WHOLE_LIST - vocabulary.LIST_NOUNS else "pending"


def find(intent: Intent, known: Known) -> Steps:
    """Without the words around it that ask for it: "show all work items"."""
    keys = intent.texts[0].keys
    meant = [at for at, key in enumerate(keys) if key not in vocabulary.LIST_WORDS] or [0, len(keys) - 1]
    phrase = intent.texts[0].part(meant[0], meant[-1] + 1).shown()
    numbers = lookup.known_ids(phrase, Known())
    tasks = yield from lookup.read("all")
    found = [task for task in tasks.items if task.id in numbers] or tasks.about(phrase, told=intent.told)
    if not found:
        return tasks.missing(phrase)
    return sentences.found(phrase, found, among=len(tasks.items) if tasks.cursor else None)


def _named(intent: Intent, known: Known) -> tuple[str, list[int]]:
    """How the tasks are named that are to change, and their numbers if they are known without a look-up."""
    words = set(tokens(intent.phrases[0])[1 if intent.told else 0 :])
    if words & vocabulary.WHOLE_LIST and words <= vocabulary.AROUND_WHOLE_LIST:
        raise Stopped(sentences.NO_BULK)
    return intent.phrases[0], lookup.known_ids(intent.phrases[0], known, told=intent.told)


def _targets(phrase: str, tasks: Tasks, known: Known, *, told: bool = False) -> tuple[list[int], list[str]]:
    """The numbers of the tasks it names, as one title first, then as several, and the names of those not found."""
    ids: list[int] = []
    missing: list[str] = []
    parts = [phrase] if tasks.fitting(phrase, told=told) else parts_of(phrase)
    for part in parts[: lookup.MAX_CALLS + 1]:
        if numbers := lookup.known_ids(part, known):
            ids += numbers
        elif found := tasks.fitting(part, told=told):
            ids.append(one_of(part, found))
        else:
            missing.append(part)
    return (list(dict.fromkeys(ids)), missing) if ids else ([], [phrase])


def _calls(tool: str, arguments: list[dict[str, Any]]) -> Calls:
    if len(arguments) > lookup.MAX_CALLS:
        raise Stopped(sentences.TOO_MANY.format(limit=lookup.MAX_CALLS))
    return tuple(ToolCall(tool, one) for one in arguments)


def _change(calls: Calls, answer: str) -> Steps:
    return sentences.told(answer, (yield calls))
