"""Plans that let an agent carry a task out."""

from offline_model.rules import lookup, naming, sentences, telling
from offline_model.rules.intents import Intent, Known, Steps, Stopped, ToolCall

_NOT_DONE = ("The coder ", "This call ", "The call ", "The outcome ")  # how such outputs begin


def carry_out(intent: Intent, known: Known) -> Steps:
    """One task, of which the agent is told all that it says; then the person is asked whether it is done."""
    meant = yield from naming.named(intent.phrases[:1], known)
    ids = list(dict.fromkeys(meant.ids))
    if meant.missing or len(ids) != 1:
        return " ".join(meant.not_found()) or sentences.ONE_AT_A_TIME
    found = {task.id: task for task in meant.found}
    if ids[0] not in found:
        found = {task.id: task for task in (yield from lookup.read({"status": "all"})).items}
    if (task := found.get(ids[0])) is None:
        raise Stopped(sentences.MISSING.format(among="task", phrase=meant.name))
    work = f"{task.title}\n\n{task.description}" if task.description else task.title
    (result,) = yield (ToolCall("do_with_coder", {"task": work, "task_id": task.id}),)
    told = result.error
    if telling.is_rejected(told):
        return sentences.NOT_DONE
    return told if told.startswith(_NOT_DONE) else f"{told}\n\n{sentences.SAY_YES_TO_COMPLETE.format(id=task.id)}"
