"""Plans that change, complete, delete and restore tasks, and undo changes."""

import re
from collections.abc import Sequence
from typing import Any

from offline_model import assignments, replies
from offline_model.conversation import ResultTask
from offline_model.language import slots
from offline_model.language.text import Text
from offline_model.plans import (
    CHANGING_TOOLS,
    Context,
    Intent,
    Plan,
    PlannedCall,
    Steps,
    create_calls,
    tell_notifications,
)
from offline_model.plans.lookup import (
    FIRST_DONE,
    FIRST_OPEN,
    FoundTasks,
    find_named_tasks,
    find_tasks,
    read_list,
    read_tasks,
    search,
)
from offline_model.plans.questions import find_by_title

_BARE_HOUR = re.compile(r"(?:at )?\d\d?")
_CLOCK = re.compile(r"\d\d:\d\d")
_NOT_CARRIED_OUT = ("The coder ", "This call ", "The call ", "The outcome ", "I could not ")
"""How the outputs of a failed call begin."""


def say(intent: Intent, context: Context) -> Steps:
    yield from ()
    return intent.answer


def change(field: str = "", *, tool: str = "update_task", **fixed: Any) -> Plan:
    """Creates a plan for the named tasks, of which each must be found; deletes a group only after "yes".

    An update sets the fixed fields or, without any, those in the template's other slot.
    """

    def plan(intent: Intent, context: Context) -> Steps:
        found = yield from find_tasks(intent, context)
        if found.missing:
            return "\n\n".join([*([replies.LEFT_ALONE] if found.ids else []), *found.not_found()])
        if found.group and tool == "delete_task":
            return f"{replies.count_tasks(found.group, 'open ')} {replies.SAY_YES}"
        fields = _read_fields(field, intent, found) if field else fixed
        return replies.report(intent.answer, (yield create_calls(tool, found.ids, **fields)))

    return plan


delete = change(tool="delete_task")


def remind(intent: Intent, context: Context) -> Steps:
    """Changes when the named tasks remind."""
    return tell_notifications((yield from change("remind")(intent, context)), context)


def _read_fields(field: str, intent: Intent, found: FoundTasks) -> dict[str, Any]:
    """Returns the arguments. A template can divide a text in several ways."""
    reading = intent.readings[intent.phrases.index(found.name)]
    slot, text = next((slot, text) for slot, text in reading.items() if slot not in (*slots.NAMING, "old_date"))
    if slot not in slots.VALUES:
        value = slots.PRIORITIES[text.keys[0]] if field == "priority" else text.unquote()
        return {field: [value] if field.endswith("labels") else value}
    fields = slots.VALUES[slot](text) or {}
    names_day = "BY" in fields.get("repeat", "") or " start" in text.raw
    if "repeat" in fields and not names_day and all(task.due for task in found.tasks):
        del fields["due"]  # "every 3 weeks" names no day
    return _choose_nearest_hour(fields, text, found.tasks)


def _choose_nearest_hour(fields: dict[str, str], text: Text, tasks: Sequence[ResultTask]) -> dict[str, str]:
    """Reads "7" as the morning or evening that is nearer to the time when the tasks are due."""
    due = fields.get("due", "")
    times = [task.due[-5:] for task in tasks if task.due and ":" in task.due]
    if not times or not _BARE_HOUR.fullmatch(text.raw.strip(" ?!.,")) or not _CLOCK.fullmatch(due):
        return fields
    hour, now = int(due[:2]) % 12, int(times[0][:2])
    return {**fields, "due": f"{min((hour, hour + 12), key=lambda at: abs(at - now)):02}:{due[3:]}"}


def correct_last(intent: Intent, context: Context) -> Steps:
    """Changes the date of the tasks that the last answer added or changed: "no, I meant Wednesday"."""
    changed = [result for result in context.last.results if result.tool in ("add_task", "update_task")]
    tasks = [task for result in changed for task in result.page.tasks]
    if not tasks:
        return replies.NO_SUBJECT
    fields = _choose_nearest_hour(slots.read_correction(intent.text) or {}, intent.text, tasks)
    return replies.report(intent.answer, (yield create_calls("update_task", [task.id for task in tasks], **fields)))


def add_missing(plan: Plan, title: str) -> Plan:
    """Creates a plan that adds a task if none has the title: "schedule call mum for Saturday"."""

    def with_addition(intent: Intent, context: Context) -> Steps:
        reading = intent.readings[0]
        phrase = reading["task"].unquote()
        if find_by_title(phrase, (yield from search([phrase], "pending"))[phrase].tasks):
            return (yield from plan(intent, context))
        date = slots.create_fields(slots.read_when(reading["date"])) if "date" in reading else {}
        new = title.format(**{slot: text.unquote() for slot, text in reading.items()})
        return replies.report(replies.ADDED, (yield (PlannedCall("add_task", {"title": new, **date}),)))

    return with_addition


def set_done(is_done: bool) -> Plan:
    """Creates a plan that completes or reopens tasks; others that are already so are mentioned."""

    def plan(intent: Intent, context: Context) -> Steps:
        found = yield from find_tasks(intent, context, FIRST_OPEN if is_done else FIRST_DONE)
        same = [task for task in found.tasks if (task.status == "completed") == is_done]
        ids = [id for id in found.ids if id not in {task.id for task in same}]
        parts = [replies.name_tasks(replies.ALREADY_DONE if is_done else replies.STILL_OPEN, same)]
        if ids:
            tool, fields = ("complete_task", {}) if is_done else ("update_task", {"status": "pending"})
            parts.append(replies.report(intent.answer, (yield create_calls(tool, ids, **fields))))
        return "\n\n".join(filter(None, [*parts, *found.not_found("open task" if is_done else "task")]))

    return plan


def delete_done(intent: Intent, context: Context) -> Steps:
    tasks = yield from read_list({"status": "completed"})
    question = f" {replies.SAY_YES}" if tasks.tasks else ""
    return f"{replies.count_tasks(tasks, 'completed ')}{question}"


def agree(intent: Intent, context: Context) -> Steps:
    answer, results = context.last.answer, context.last.results
    if answer.endswith(replies.SAY_YES_TO_COMPLETE):
        return replies.report(
            replies.COMPLETED, (yield create_calls("complete_task", [results[-1].arguments["task_id"]]))
        )
    lists = [result for result in results if result.tool == "list_tasks"] if answer.endswith(replies.SAY_YES) else []
    filters = [{**one.arguments, "cursor": None} for one in lists]
    pages = [one.page for one, of_page in zip(lists, filters, strict=True) if of_page == filters[-1]]
    ids = [task.id for page in pages for task in page.tasks]
    return replies.report(replies.DELETED, (yield create_calls("delete_task", ids))) if ids else intent.answer


def disagree(intent: Intent, context: Context) -> Steps:
    yield from ()
    is_asked = context.last.answer.endswith((replies.SAY_YES, replies.SAY_YES_TO_COMPLETE))
    return replies.LEFT_ALONE if is_asked else intent.answer


def undo(intent: Intent, context: Context) -> Steps:
    tools, ids = _find_last_change(context)
    if not ids:
        return replies.NOTHING_TO_UNDO
    answer = replies.REMOVED if tools == {"add_task"} else replies.REVERTED
    return replies.report(answer, (yield create_calls("update_task", ids, undo=True)))


def undo_tasks(*statuses: str) -> Plan:
    def plan(intent: Intent, context: Context) -> Steps:
        found = yield from find_named_tasks(intent, context, statuses)
        if statuses == ("deleted",) and found.ids and not found.tasks:  # a number or "it", whose state is not known
            deleted = yield from read_tasks(found.ids, "deleted")
            found.missing += [found.name] if len(deleted) < len(set(found.ids)) else []
        if found.missing:
            return "\n\n".join(found.not_found("deleted task" if statuses == ("deleted",) else "task"))
        return replies.report(intent.answer, (yield create_calls("update_task", found.ids, undo=True)))

    return plan


def restore_last(intent: Intent, context: Context) -> Steps:
    """Restores the tasks that the last answer deleted, else the task that was deleted last."""
    tools, ids = _find_last_change(context)
    if tools != {"delete_task"}:
        tasks = yield from read_list({"status": "deleted"}, max_tasks=1)
        ids = [task.id for task in tasks.tasks]
    if not ids:
        return replies.NOTHING_DELETED
    return replies.report(intent.answer, (yield create_calls("update_task", ids, undo=True)))


def _find_last_change(context: Context) -> tuple[set[str], list[int]]:
    """Returns the tools and tasks of the last answer that changed some and is not undone."""
    undone = 0
    for turn in reversed(context.earlier):
        results = [result for result in turn.results if result.tool in CHANGING_TOOLS and not result.error]
        ids = [task.id for result in results for task in result.page.tasks]
        if any(result.arguments.get("undo") for result in results):
            undone += 1
        elif ids and not undone:
            return {result.tool for result in results}, ids
        elif ids:
            undone -= 1
    return set(), []


def carry_out(intent: Intent, context: Context) -> Steps:
    """Gives one task to an agent and asks whether it is done. What no agent can do here needs no approval first."""
    found = yield from find_named_tasks(intent, context, FIRST_OPEN)
    if found.missing or len(set(found.ids)) != 1:
        return " ".join(found.not_found()) or replies.ONE_AT_A_TIME
    tasks = found.tasks or (yield from read_tasks(found.ids))
    if not tasks:
        return replies.MISSING.format(kind="task", phrase=found.name)
    task = tasks[0]
    assignment = f"{task.title}\n\n{task.description}" if task.description else task.title
    if not assignments.can_do(assignment):
        return replies.NEEDS_MODEL
    (result,) = yield (PlannedCall("do_with_coder", {"task": assignment, "task_id": task.id}),)
    if replies.is_rejected(result.error):
        return replies.NOT_DONE
    if result.error.startswith(_NOT_CARRIED_OUT):
        return result.error
    return f"{result.error}\n\n{replies.SAY_YES_TO_COMPLETE}"
