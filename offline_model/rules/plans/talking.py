"""Plans that change nothing of their own: an answer, and what follows a question whether to go on."""

import re

from offline_model.rules import sentences, telling
from offline_model.rules.intents import Intent, Known, Steps, several

_COMPLETE = re.compile(re.escape(sentences.SAY_YES_TO_COMPLETE).replace(r"\{id\}", r"(\d{1,18})") + r"\Z")


def say(intent: Intent, known: Known) -> Steps:
    yield from ()
    return intent.answer


def agree(intent: Intent, known: Known) -> Steps:
    """Complete or delete what the last answer asked about: exactly the tasks that it named, whatever was done since."""
    last = known.earlier[-1] if known.earlier else None
    if last is not None and (asked := _COMPLETE.search(last.answer)):
        return telling.told(sentences.COMPLETED, (yield several("complete_task", [int(asked[1])])))
    if last is None or not last.answer.endswith(sentences.SAY_YES):
        return intent.answer
    ids = [task.id for step in last.steps for result in step for task in result.page.tasks]
    return telling.told(sentences.DELETED_ALL, (yield several("delete_task", ids))) if ids else intent.answer


def refuse(intent: Intent, known: Known) -> Steps:
    yield from ()
    last = known.earlier[-1].answer if known.earlier else ""
    asked = last.endswith(sentences.SAY_YES) or _COMPLETE.search(last)
    return sentences.LEFT_ALONE if asked else intent.answer
