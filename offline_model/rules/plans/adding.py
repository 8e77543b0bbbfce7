"""Plans that add tasks."""

from collections.abc import Sequence
from itertools import groupby
from typing import Any

import english
from offline_model.rules import sentences, telling
from offline_model.rules.intents import MAX_CALLS, Calls, Intent, Known, Steps, Stopped, ToolCall
from offline_model.rules.language.pattern import Reading
from offline_model.rules.plans.new_tasks import NewTask, new_tasks


def add(intent: Intent, known: Known) -> Steps:
    tasks = [task for reading in intent.readings for task in _added(reading)]
    if not tasks:
        return sentences.NO_TITLE
    _check_weekdays(tasks)
    arguments = [task.arguments for task in tasks]
    has_date = any("due" in task for task in arguments)
    answer = sentences.WITH_DATE.get(intent.answer, intent.answer) if has_date else intent.answer
    labels = dict.fromkeys(label for task in arguments for label in task.get("labels", ()))
    results = yield _calls(arguments)
    said = [telling.told(answer, results, value=", ".join(labels))]
    unread = dict.fromkeys(f'"{words}"' for task in tasks for words in task.reading.unread)
    if unread and not any(result.error for result in results):
        said.append(sentences.NOT_UNDERSTOOD.format(words=" and ".join(unread)))
    if any("FROM=DONE" in str(task.get("repeat")) for task in arguments):
        said.append(sentences.FIRST_TIME)
    return "\n\n".join(said)


def _check_weekdays(tasks: Sequence[NewTask]) -> None:
    """Adds nothing where a weekday is not that of its date: which of them is wrong is for the user to say."""
    for span in (span for task in tasks for span in task.reading.spans if span.reason):
        raise Stopped(sentences.OTHER_WEEKDAY.format(words=span.text, reason=span.reason))


def _added(reading: Reading) -> list[NewTask]:
    """Of "remind me tomorrow to call mum": "call mum", with that date."""
    if "title" in reading:
        title = reading["title"].shown()
        return [NewTask({"title": title}, english.Reading(title))]
    text = next(reversed(reading.values()))
    return new_tasks(text, reading["when"].raw if "when" in reading else "")


def _calls(tasks: Sequence[dict[str, Any]]) -> Calls:
    """One for all that follow each other and differ in nothing but the title."""
    if len(tasks) > MAX_CALLS:
        raise Stopped(sentences.TOO_MANY.format(limit=MAX_CALLS))
    calls: list[ToolCall] = []
    for details, alike in groupby(tasks, key=lambda task: {name: task[name] for name in task if name != "title"}):
        first, *others = [task["title"] for task in alike]
        calls.append(ToolCall("add_task", {"title": first, **({"also": others} if others else {}), **details}))
    return tuple(calls)
