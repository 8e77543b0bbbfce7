"""What a plan works with: calls of tools, what earlier turns tell, and tasks looked up by their names."""

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from offline_model.conversation import Result, Task, Turn
from offline_model.rules import sentences
from offline_model.rules.language.pattern import Reading
from offline_model.rules.language.text import Text
from offline_model.rules.language.vocabulary import VERBS
from offline_model.rules.language.words import meaning, numbers_in, points, tokens

MAX_CALLS = 25
PAGE = 100
IN_ONE_CALL = 100
MAX_PAGES = 5


@dataclass(frozen=True)
class ToolCall:
    name: str
    arguments: dict[str, Any]


Calls = tuple[ToolCall, ...]
Results = tuple[Result, ...]
Kind = Literal["request", "aside", "reply"]
Steps = Generator[Calls, Results, str]
"""Yields the calls of a step, is sent their results, and returns what to say."""


@dataclass(frozen=True)
class Known:
    """What earlier turns tell: the numbers chosen for phrases asked about; status and cursor where a list goes on.

    `earlier` are those turns themselves, the last of them last.
    """

    chosen: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    rest: tuple[str, str] | None = None
    earlier: Sequence[Turn] = ()


@dataclass(frozen=True)
class Intent:
    """One thing wanted: a row of the table of wishes, and how its pattern reads what was said.

    A phrase is how a task was named, by words or numbers; `told` if it is a deed, such as "bought the milk".
    """

    plan: Callable[["Intent", Known], Steps]
    answer: str
    readings: Sequence[Reading] = ()
    phrases: Sequence[str] = ()
    kind: Kind = "request"
    told: bool = False

    @property
    def texts(self) -> list[Text]:
        """What stands in the last gap of each reading."""
        return [next(reversed(reading.values())) for reading in self.readings]


def several(tool: str, ids: Sequence[int], **arguments: Any) -> Calls:
    """One call for up to a hundred tasks, which is as many as a tool takes."""
    groups = [ids[at : at + IN_ONE_CALL] for at in range(0, len(ids), IN_ONE_CALL)]
    return tuple(
        ToolCall(tool, {"task_id": first, **arguments} | ({"also": others} if others else {}))
        for first, *others in groups
    )


class Stopped(Exception):
    """The plan ends here, with this sentence."""


@dataclass
class Tasks:
    """Tasks among which phrases are looked for; each title is taken apart once."""

    items: Sequence[Task]
    cursor: str | None = None

    @cached_property
    def _titles(self) -> list[tuple[Task, list[str], frozenset[str]]]:
        return [(task, tokens(task.title), meaning(task.title)) for task in self.items]

    def fitting(self, phrase: str, *, told: bool = False) -> list[Task]:
        """Those whose titles equal the phrase, else those of the same words, else those that have all its words.

        `told` says that the phrase is a deed such as "bought the milk", whose verb need not be in the title: it means
        "milk" too, but not "sell milk".
        """
        words, wanted = tokens(phrase), meaning(phrase)
        equal = [task for task, title, _ in self._titles if words and title == words]
        alike = [task for task, _, title in self._titles if wanted and title == wanted]
        found = equal or alike or [task for task, _, title in self._titles if wanted and wanted <= title]
        if found or not told:
            return found
        found = self.fitting(" ".join(words[1:]))
        is_any = words[0] in ("did", "done", "got", "finished", "completed")
        return [task for task in found if is_any or tokens(task.title)[0] not in VERBS]

    def about(self, phrase: str, *, told: bool = False) -> list[Task]:
        """Those whose title or description has all words of the phrase, else those that it names."""
        wanted = meaning(phrase)
        having = [task for task in self.items if wanted <= meaning(f"{task.title} {task.description or ''}")]
        return having if having and wanted else self.fitting(phrase, told=told)

    def missing(self, phrase: str, among: str = "task") -> str:
        sentence = sentences.NOT_ALL_READ if self.cursor else sentences.MISSING
        return sentence.format(count=len(self.items), among=among, phrase=phrase)


def read(
    status: str, cursor: str | None = None, *, most: int = PAGE * MAX_PAGES, **filters: str
) -> Generator[Calls, Results, Tasks]:
    items: list[Task] = []
    for _ in range(MAX_PAGES):
        arguments = {"status": status, "limit": PAGE} | filters | ({"cursor": cursor} if cursor else {})
        (result,) = yield (ToolCall("list_tasks", arguments),)
        if result.error:
            raise Stopped(f"I could not read your list: {sentences.in_words(result.error)}")
        items += result.page.tasks
        cursor = result.page.next_cursor
        if not cursor or len(items) >= most:
            break
    return Tasks(items, cursor)


def known_ids(phrase: str, known: Known, *, told: bool = False) -> list[int]:
    """The numbers of a phrase that need no look-up; where it names nothing, the plan ends with the question which."""
    ids = list(dict.fromkeys(known.chosen.get(phrase) or numbers_in(phrase)))
    if not ids and points(phrase.partition(" ")[2] if told else phrase):
        raise Stopped(sentences.NO_SUBJECT)
    return ids
