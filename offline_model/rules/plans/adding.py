"""Plans that add tasks."""

from collections.abc import Sequence
from itertools import groupby

from offline_model.rules import sentences, telling
from offline_model.rules.intents import MAX_CALLS, Calls, Intent, Known, Steps, Stopped, ToolCall
from offline_model.rules.language import dates
from offline_model.rules.language.pattern import Reading
from offline_model.rules.plans.new_tasks import NewTask, new_tasks


def add(intent: Intent, known: Known) -> Steps:
    tasks = [task for reading in intent.readings for task in _added(reading)]
    if not tasks:
        return sentences.NO_TITLE
    has_date = any("due" in task for task in tasks)
    answer = sentences.WITH_DATE.get(intent.answer, intent.answer) if has_date else intent.answer
    labels = dict.fromkeys(label for task in tasks for label in task.get("labels", ()))
    results = yield _calls(tasks)
    said = telling.told(answer, results, value=", ".join(labels))
    after_done = any("FROM=DONE" in str(task.get("repeat")) and task.get("due") == "today" for task in tasks)
    return f"{said}\n\n{sentences.FIRST_TIME}" if after_done else said


def _added(reading: Reading) -> list[NewTask]:
    """Of "remind me tomorrow to call mum": "call mum", with that date."""
    if "title" in reading:
        return [{"title": reading["title"].shown()}]
    text = next(reversed(reading.values()))
    if start := dates.leading(text) if set(reading) & {"dated errand"} else None:
        _, errand = start
        return new_tasks(errand, text.part(0, len(text.keys) - len(errand.keys)).raw.strip(" ,:"))
    return new_tasks(text, reading["when"].raw if "when" in reading else "")


def _calls(tasks: Sequence[NewTask]) -> Calls:
    """One for all that follow each other and differ in nothing but the title."""
    if len(tasks) > MAX_CALLS:
        raise Stopped(sentences.TOO_MANY.format(limit=MAX_CALLS))
    calls: list[ToolCall] = []
    for details, alike in groupby(tasks, key=lambda task: {name: task[name] for name in task if name != "title"}):
        first, *others = [task["title"] for task in alike]
        calls.append(ToolCall("add_task", {"title": first, **({"also": others} if others else {}), **details}))
    return tuple(calls)
