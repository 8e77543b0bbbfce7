"""How intents are carried out: a plan yields the calls of a step, is sent their results, and returns what to say."""

from collections.abc import Generator

from offline_model.rules import sentences
from offline_model.rules.intents import Add, Complete, Delete, Find, Intent, List, Say, Update
from offline_model.rules.lookup import (
    Answers,
    Calls,
    Results,
    Stopped,
    Tasks,
    ToolCall,
    known_ids,
    one_of,
    read,
    targets_of,
)

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
    numbers = known_ids(intent.phrase, {})
    tasks = yield from read("all")
    by_number = [task for task in tasks.items if task["id"] in numbers]
    found = by_number if numbers else tasks.fitting(intent.phrase, told=intent.told)
    if not found:
        return tasks.missing(intent.phrase)
    return sentences.found(intent.phrase, found, among=None if tasks.whole else len(tasks.items))


def _complete(intent: Complete, answers: Answers) -> Plan:
    ids = known_ids(intent.phrase, answers)
    if len(ids) > MAX_CALLS:
        raise Stopped(sentences.TOO_MANY.format(limit=MAX_CALLS))
    tasks = yield from read("pending")
    if ids:
        return (yield from _complete_numbers(ids, tasks))
    targets = targets_of(intent.phrase, tasks, answers, told=intent.told)
    said = [(yield from _change_each("complete_task", targets.ids))] if targets.ids else []
    if targets.missing:
        completed = yield from read("completed")
        for phrase in targets.missing:
            done = completed.fitting(phrase, told=intent.told)
            said.append(sentences.already(done) if done else tasks.missing(phrase, "open task"))
    return "\n\n".join(said)


def _complete_numbers(ids: tuple[int, ...], tasks: Tasks) -> Plan:
    """All are called, as a number that is not among the open ones may be done already or no task at all."""
    results = yield tuple(ToolCall("complete_task", {"task_id": id}) for id in ids)
    open_ids = {task["id"] for task in tasks.items}
    already = [result for result in results if tasks.whole and not result.error and result.value["id"] not in open_ids]
    said = [sentences.already(result.value for result in already)] if already else []
    return "\n\n".join([*said, sentences.changes([result for result in results if result not in already])]).strip()


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
