"""How intents are carried out: a plan yields the calls of a step, is sent their results, and returns what to say."""

from collections.abc import Generator

from offline_model.rules import sentences
from offline_model.rules.intents import Add, Complete, Delete, Find, Intent, List, Say, Update
from offline_model.rules.lookup import (
    Answers,
    Calls,
    Results,
    Stopped,
    ToolCall,
    known_ids,
    one_of,
    read,
    targets_of,
)
from offline_model.rules.words import numbers_in

MAX_CALLS = 25

Plan = Generator[Calls, Results, str]


def carry_out(intents: tuple[Intent, ...], answers: Answers) -> Plan:
    said = ""
    try:
        for intent in intents:
            said += "\n\n" + (yield from _plan(intent, answers))
    except Stopped as stopped:
        said += f"\n\n{stopped}"
    return said.strip()


def _plan(intent: Intent, answers: Answers) -> Plan:
    match intent:
        case Say():
            return intent.text
        case Add():
            return (yield from _add(intent))
        case List():
            tasks = yield from read(intent.status)
            return sentences.listing(intent.status, tasks.items, whole=tasks.whole)
        case Find():
            return (yield from _find(intent))
        case Complete():
            return (yield from _complete(intent, answers))
        case Update():
            return (yield from _update(intent, answers))
        case Delete():
            return (yield from _delete(intent, answers))


def _add(intent: Add) -> Plan:
    calls = tuple(
        ToolCall("add_task", {"title": task.title} | ({"description": task.description} if task.description else {}))
        for task in intent.tasks
    )
    said = yield from _change(calls)
    return f"{said}\n\n{intent.remark}" if intent.remark else said


def _find(intent: Find) -> Plan:
    numbers = numbers_in(intent.phrase)
    tasks = yield from read("all")
    found = [task for task in tasks.items if task["id"] in numbers] if numbers else tasks.fitting(intent.phrase)
    if not found:
        return tasks.missing(intent.phrase)
    return f'{sentences.counted(len(found))} for "{intent.phrase}":\n\n{sentences.task_lines(found)}'


def _complete(intent: Complete, answers: Answers) -> Plan:
    if ids := known_ids(intent.phrase, answers):
        return (yield from _change_each("complete_task", ids))
    tasks = yield from read("pending")
    targets = targets_of(intent.phrase, tasks, answers, told=intent.told)
    said = [(yield from _change_each("complete_task", targets.ids))] if targets.ids else []
    if targets.missing:
        completed = yield from read("completed")
        for phrase in targets.missing:
            already = map(sentences.named, completed.fitting(phrase, told=intent.told))
            named = ", ".join(already)
            said.append(f"Already done: {named}." if named else tasks.missing(phrase, "open task"))
    return "\n\n".join(said)


def _delete(intent: Delete, answers: Answers) -> Plan:
    if ids := known_ids(intent.phrase, answers):
        return (yield from _change_each("delete_task", ids))
    tasks = yield from read("all")
    targets = targets_of(intent.phrase, tasks, answers)
    if targets.missing:
        said = list(map(tasks.missing, targets.missing))
        return " ".join([*said, sentences.NONE_DELETED] if targets.ids else said)
    return (yield from _change_each("delete_task", targets.ids))


def _update(intent: Update, answers: Answers) -> Plan:
    for phrase, value in intent.readings:
        if ids := known_ids(phrase, answers):
            return (yield from _change_each("update_task", ids, **{intent.field: value}))
    tasks = yield from read("all")
    found = [(phrase, value, tasks.fitting(phrase)) for phrase, value in intent.readings]
    hits = [reading for reading in found if reading[2]]
    if not hits:
        return tasks.missing(intent.readings[0][0])
    exact = [hit for hit in hits if hit[0].casefold() == hit[2][0]["title"].casefold()]
    phrase, value, fits = (exact or hits)[0]
    return (yield from _change_each("update_task", [one_of(phrase, fits)], **{intent.field: value}))


def _change_each(tool: str, ids: tuple[int, ...] | list[int], **fields: str) -> Plan:
    return (yield from _change(tuple(ToolCall(tool, {"task_id": id, **fields}) for id in ids)))


def _change(calls: Calls) -> Plan:
    if len(calls) > MAX_CALLS:
        raise Stopped(sentences.TOO_MANY.format(limit=MAX_CALLS))
    return sentences.changes((yield calls))
