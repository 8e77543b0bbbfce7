"""Taking back what the last answer that changed something did: the calls and their results tell which tasks."""

from offline_model.conversation import Turn
from offline_model.rules import sentences
from offline_model.rules.lookup import Intent, Known, Steps, several


def undo(intent: Intent, known: Known) -> Steps:
    tools, ids = _last_changed(known)
    if not ids:
        return sentences.NOTHING_TO_UNDO
    results = yield several("update_task", ids, undo=True)
    tool = tools.pop() if len(tools) == 1 else ""
    return sentences.told(sentences.UNDONE.get(tool, sentences.UNDONE["update_task"]), results)


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
