"""Plans that take back: what the last answer did, or what was deleted."""

from offline_model.conversation import Turn
from offline_model.rules import lookup, naming, sentences, telling
from offline_model.rules.intents import Intent, Known, Steps, several

_ANY = ("pending", "completed", "deleted")


def undo(intent: Intent, known: Known) -> Steps:
    """The calls and their results tell which tasks the last answer that changed something did change."""
    tools, ids = _last_changed(known)
    if not ids:
        return sentences.NOTHING_TO_UNDO
    results = yield several("update_task", ids, undo=True)
    tool = tools.pop() if len(tools) == 1 else ""
    return telling.told(sentences.UNDONE.get(tool, sentences.UNDONE["update_task"]), results)


def bring_back_last(intent: Intent, known: Known) -> Steps:
    """What was deleted last: in this conversation all of the answer, else the one task."""
    tools, ids = _last_changed(known)
    if tools != {"delete_task"}:
        tasks = yield from lookup.read({"status": "deleted"}, limit=1, most=1)
        ids = [task.id for task in tasks.items]
    if not ids:
        return sentences.NOTHING_DELETED
    return telling.told(intent.answer, (yield several("update_task", ids, undo=True)))


def bring_back(intent: Intent, known: Known) -> Steps:
    """Tasks that were deleted, by their names."""
    meant = yield from naming.named(intent.phrases[:1], known, statuses=("deleted",))
    if meant.missing:
        return "\n\n".join(meant.not_found("deleted task"))
    return telling.told(intent.answer, (yield several("update_task", meant.ids, undo=True)))


def undo_task(intent: Intent, known: Known) -> Steps:
    """The last change of a task that is named."""
    meant = yield from naming.named(intent.phrases[:1], known, statuses=_ANY)
    if meant.missing:
        return "\n\n".join(meant.not_found())
    return telling.told(intent.answer, (yield several("update_task", meant.ids, undo=True)))


def _last_changed(known: Known) -> tuple[set[str], list[int]]:
    """The tools and the tasks; what was taken back already is passed over."""
    taken_back = 0
    for turn in reversed(known.earlier):
        tools, ids, is_undo = _changes(turn)
        if is_undo:
            taken_back += 1
        elif ids and not taken_back:
            return tools, ids
        elif ids:
            taken_back -= 1
    return set(), []


def _changes(turn: Turn) -> tuple[set[str], list[int], bool]:
    made = [result for step in turn.steps for result in step if result.tool in sentences.BY_TOOL and not result.error]
    ids = [task.id for result in made for task in result.page.tasks]
    is_undo = any(result.arguments.get("undo") for result in made)
    return {result.tool for result in made}, list(dict.fromkeys(ids)), is_undo
