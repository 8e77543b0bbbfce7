"""From words to task numbers: the list is read, page by page, and the phrase tried on its titles."""

from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from typing import Any

from offline_model.rules import questions, sentences
from offline_model.rules.conversation import Result
from offline_model.rules.intents import Status
from offline_model.rules.words import fitting, numbers_in, parts_of, points

PAGE = 100
MAX_PAGES = 5


@dataclass(frozen=True)
class ToolCall:
    name: str
    arguments: dict[str, Any]


Calls = tuple[ToolCall, ...]
Results = tuple[Result, ...]
Task = dict[str, Any]
Answers = Mapping[str, tuple[int, ...]]
"""For the phrase of a question that was asked, the task numbers that were chosen."""


class Stopped(Exception):
    """The plan ends here, with this sentence."""


@dataclass(frozen=True)
class Tasks:
    items: list[Task]
    whole: bool

    def fitting(self, phrase: str, *, told: bool = False) -> list[Task]:
        return [self.items[index] for index in fitting(phrase, [task["title"] for task in self.items], told=told)]

    def missing(self, phrase: str, among: str = "task") -> str:
        if not self.whole:
            return sentences.NOT_ALL_READ.format(count=len(self.items), phrase=phrase)
        return sentences.missing(phrase, among)


@dataclass
class Targets:
    ids: list[int] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)


def read(status: Status) -> Generator[Calls, Results, Tasks]:
    items: list[Task] = []
    cursor: str | None = None
    for _ in range(MAX_PAGES):
        arguments = {"status": status, "limit": PAGE} | ({"cursor": cursor} if cursor else {})
        (result,) = yield (ToolCall("list_tasks", arguments),)
        if result.error:
            raise Stopped(f"I could not read your list: {sentences.in_words(result.error)}")
        items += result.value["tasks"]
        cursor = result.value.get("next_cursor")
        if not cursor:
            return Tasks(items, whole=True)
    return Tasks(items, whole=False)


def known_ids(phrase: str, answers: Answers) -> tuple[int, ...]:
    """The numbers of a phrase that need no look-up; where it names nothing, the plan ends with the question which."""
    if ids := tuple(dict.fromkeys(answers.get(phrase) or numbers_in(phrase))):
        return ids
    if points(phrase):
        raise Stopped(sentences.NO_SUBJECT)
    return ()


def one_of(phrase: str, found: list[Task]) -> int:
    """The number of the one task found; where there are more, the plan ends with the question which."""
    if len(found) > 1:
        raise Stopped(questions.ask(phrase, found))
    return found[0]["id"]


def targets_of(phrase: str, tasks: Tasks, answers: Answers, *, told: bool = False) -> Targets:
    """As one title first, then as several joined by commas and "and"."""
    targets = Targets()
    for part in [phrase] if tasks.fitting(phrase, told=told) else parts_of(phrase):
        if ids := known_ids(part, answers):
            targets.ids += ids
        elif found := tasks.fitting(part, told=told):
            targets.ids.append(one_of(part, found))
        else:
            targets.missing.append(part)
    targets.ids = list(dict.fromkeys(targets.ids))
    return targets if targets.ids else Targets(missing=[phrase])
