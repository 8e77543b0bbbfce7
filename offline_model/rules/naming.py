"""Which tasks are meant by what was said of them: by their numbers, by their words, one or several."""

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from offline_model.conversation import Named, Task
from offline_model.rules import lookup
from offline_model.rules.intents import MAX_CALLS, Calls, Known, Results, Stopped
from offline_model.rules.language import vocabulary
from offline_model.rules.language.text import parts_of
from offline_model.rules.language.words import tokens
from offline_model.rules.lookup import Tasks
from offline_model.rules.questions import Question, one_of
from offline_model.rules.sentences import MISSING, NO_BULK, NOT_ALL_READ, TOO_MANY

Item = TypeVar("Item")
FIRST_OPEN = ("pending", "completed")
FIRST_DONE = ("completed", "pending")


@dataclass
class Meant:
    """The tasks found by their words; the numbers of all; and the names that no task has."""

    name: str
    ids: list[int] = field(default_factory=list)
    found: list[Task] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    is_cut: bool = False
    """Whether more tasks have the words than were read."""

    def not_found(self, among: str = "task") -> list[str]:
        sentence = NOT_ALL_READ if self.is_cut else MISSING
        return [sentence.format(among=among, phrase=name) for name in self.missing]

    def add(self, *tasks: Task) -> None:
        self.found += tasks
        self.ids += [task.id for task in tasks]


def named(
    phrases: Sequence[str], known: Known, *, statuses: Sequence[str] = FIRST_OPEN, told: bool = False
) -> Generator[Calls, Results, Meant]:
    """The tasks that one of the phrases names, those of the first status before those of the next.

    A phrase is looked up as one title first, then as several. Where a part fits several tasks, or none but one with a
    similar title, the plan ends with the question which is meant.
    """
    phrases = sorted(phrases, key=len)
    if phrases[0] not in known.chosen:
        check_is_named(phrases[0], told=told)
    for phrase in phrases:
        if ids := lookup.known_ids(phrase, known, told=told):
            return Meant(phrase, ids if phrase in known.chosen else _not_too_many(ids))
    parts = _not_too_many(parts_of(phrases[0]))
    meant = Meant(phrases[0], missing=parts)
    looked_up: list[dict[str, Tasks]] = []
    for status in statuses:
        names = [*([] if meant.ids else phrases), *meant.missing]
        wanted = [name for name in dict.fromkeys(names) if not lookup.known_ids(name, known)]
        tasks = yield from lookup.search(wanted, status, told=told)
        looked_up.append(tasks)
        meant.is_cut |= any(one.cursor for one in tasks.values())
        if not meant.ids and (whole := _as_one(phrases, tasks, told=told)):
            return whole
        for part in list(meant.missing):
            _take(part, meant, tasks, known, told=told)
        if not meant.missing:
            break
    if meant.missing:
        _ask_for_similar(meant.missing if meant.ids else [phrases[0]], looked_up, told=told)
    return meant if meant.ids else Meant(phrases[0], missing=[phrases[0]], is_cut=meant.is_cut)


def _not_too_many(named: list[Item]) -> list[Item]:
    if len(named) > MAX_CALLS:
        raise Stopped(TOO_MANY.format(limit=MAX_CALLS))
    return named


def check_is_named(phrase: str, *, told: bool = False) -> None:
    """Of "all my tasks" no task is changed, as it names none."""
    words = set(tokens(phrase)[1 if told else 0 :])
    if words & vocabulary.WHOLE_LIST and words <= vocabulary.AROUND_WHOLE_LIST:
        raise Stopped(NO_BULK)


def _as_one(phrases: Sequence[str], tasks: dict[str, Tasks], *, told: bool) -> Meant | None:
    """The phrase that is a task's whole title before one that has its words."""
    hits = [(phrase, found) for phrase in phrases if (found := tasks[phrase].fitting(phrase, told=told))]
    exact = [(phrase, found) for phrase, found in hits if found[0].title.casefold() == phrase.casefold()]
    for phrase, found in (exact or hits)[:1]:
        meant = Meant(phrase)
        meant.add(one_of(phrase, found))
        return meant
    return None


def _take(part: str, meant: Meant, tasks: dict[str, Tasks], known: Known, *, told: bool) -> None:
    if numbers := lookup.known_ids(part, known):
        meant.ids += numbers
    elif found := tasks[part].fitting(part, told=told):
        meant.add(one_of(part, found))
    else:
        return
    meant.missing.remove(part)


def _ask_for_similar(missing: Sequence[str], looked_up: Sequence[dict[str, Tasks]], *, told: bool) -> None:
    for name in missing:
        similar: dict[int, Named] = {}
        for tasks in looked_up:
            similar |= {task.id: task for task in tasks[name].similar(name, told=told)} if name in tasks else {}
        if similar:
            options = [Task(id=task.id, title=task.title) for task in similar.values()]
            raise Stopped(str(Question(name, options, is_guess=True)))
