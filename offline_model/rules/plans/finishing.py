"""Plans that complete and delete tasks."""

from offline_model.rules import lookup, naming, sentences, telling
from offline_model.rules.intents import Intent, Known, Steps, several
from offline_model.rules.lookup import Tasks
from offline_model.rules.plans import groups


def complete(intent: Intent, known: Known) -> Steps:
    """A task that is not among the open ones may be done already, or no task at all."""
    meant = yield from naming.named(intent.phrases[:1], known, told=intent.told)
    done = [task for task in meant.found if task.status == "completed"]
    ids = [id for id in dict.fromkeys(meant.ids) if id not in {task.id for task in done}]
    said = [telling.already(done)]
    if ids:
        said.append(telling.told(intent.answer, (yield several("complete_task", ids))))
    return "\n\n".join(filter(None, [*said, *meant.not_found("open task")]))


def complete_group(intent: Intent, known: Known) -> Steps:
    tasks = yield from groups.members(intent.texts[0])
    return telling.told(intent.answer, (yield several("complete_task", [task.id for task in tasks.items])))


def reopen(intent: Intent, known: Known) -> Steps:
    """One that is done before one that is not."""
    meant = yield from naming.named(intent.phrases[:1], known, statuses=naming.FIRST_DONE, told=intent.told)
    still_open = [task for task in meant.found if task.status != "completed"]
    ids = [id for id in dict.fromkeys(meant.ids) if id not in {task.id for task in still_open}]
    said = [telling.already(still_open, "Still open")]
    if ids:
        said.append(telling.told(intent.answer, (yield several("update_task", ids, status="pending"))))
    return "\n\n".join(filter(None, [*said, *meant.not_found()]))


def delete(intent: Intent, known: Known) -> Steps:
    meant = yield from naming.named(intent.phrases[:1], known)
    if meant.missing:
        return " ".join([*([sentences.NONE_DELETED] if meant.ids else []), *meant.not_found()])
    return telling.told(intent.answer, (yield several("delete_task", list(dict.fromkeys(meant.ids)))))


def delete_done(intent: Intent, known: Known) -> Steps:
    tasks = yield from lookup.read({"status": "completed"})
    return _ask(tasks, "done ") if tasks.items else sentences.NONE_DONE


def delete_group(intent: Intent, known: Known) -> Steps:
    return _ask((yield from groups.members(intent.texts[0])))


def _ask(tasks: Tasks, kind: str = "") -> str:
    """Whoever agrees deletes exactly those, which are shown below the question."""
    return f"{telling.asked(tasks, kind)} {sentences.SAY_YES}"
