"""Plans that change nothing of their own: an answer, and what follows a question whether to go on."""

from offline_model.rules import sentences, telling
from offline_model.rules.intents import Intent, Known, Steps, several


def say(intent: Intent, known: Known) -> Steps:
    yield from ()
    return intent.answer


def agree(intent: Intent, known: Known) -> Steps:
    """Delete what the last answer asked about: exactly the tasks that it counted, whatever was done since."""
    last = known.earlier[-1] if known.earlier else None
    if last is None or not last.answer.endswith(sentences.SAY_YES):
        return intent.answer
    ids = [task.id for step in last.steps for result in step for task in result.page.tasks]
    return telling.told(sentences.DELETED_ALL, (yield several("delete_task", ids))) if ids else intent.answer


def refuse(intent: Intent, known: Known) -> Steps:
    yield from ()
    asked = bool(known.earlier) and known.earlier[-1].answer.endswith(sentences.SAY_YES)
    return sentences.LEFT_ALONE if asked else intent.answer
