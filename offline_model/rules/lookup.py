"""Tasks looked up by words of their titles."""

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from typing import Any

from offline_model.conversation import Named, Task
from offline_model.rules import telling
from offline_model.rules.intents import Calls, Known, Results, Stopped, ToolCall
from offline_model.rules.language.vocabulary import UNSAID, VERBS
from offline_model.rules.language.words import base, meaning, numbers_in, points, tokens
from offline_model.rules.sentences import NO_SUBJECT

PAGE = 100
MAX_PAGES = 5
_MOST_WORDS = 6
_LONGEST_WORD = 30
_ALIKE = 0.75


@dataclass
class Tasks:
    """Tasks among which phrases are looked for; each title is taken apart once.

    `total` is how many there are on all pages; where there are none, `nearest` are those with similar titles.
    """

    items: Sequence[Task]
    cursor: str | None = None
    total: int = 0
    now: str = ""
    nearest: Sequence[Named] = ()

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

    def similar(self, phrase: str, *, told: bool = False) -> list[Named]:
        """Of the nearest those in which each word of the phrase, but for a deed's verb, is spelled so or nearly so."""
        wanted = meaning(phrase.partition(" ")[2] if told else phrase)
        words = [word[:_LONGEST_WORD] for word in wanted][:_MOST_WORDS]
        titles = [(task, tokens(task.title)) for task in self.nearest]
        return [
            task for task, title in titles if words and all(get_close_matches(word, title, 1, _ALIKE) for word in words)
        ]

    def having(self, phrase: str) -> list[Task]:
        """Those whose title, description or labels have all words of the phrase."""
        wanted = meaning(phrase)
        texts = [(task, f"{task.title} {task.description or ''} {' '.join(task.labels)}") for task in self.items]
        return [task for task, text in texts if wanted <= meaning(text)]


def read(
    arguments: Mapping[str, Any], *, most: int = PAGE * MAX_PAGES, limit: int = PAGE
) -> Generator[Calls, Results, Tasks]:
    """A list with these arguments, page by page, up to so many tasks."""
    tasks = Tasks([])
    cursor = arguments.get("cursor")
    for _ in range(MAX_PAGES):
        more = {"limit": limit} | ({"cursor": cursor} if cursor else {})
        (page,) = yield from _pages(({**arguments, **more},))
        cursor = page.cursor
        tasks = Tasks([*tasks.items, *page.items], cursor, page.total, page.now, page.nearest)
        if not cursor or len(tasks.items) >= most:
            break
    return tasks


def search(names: Sequence[str], status: str, *, told: bool = False) -> Generator[Calls, Results, dict[str, Tasks]]:
    """For each name the tasks that have its words, looked up in one step."""
    if not names:
        return {}
    asked = [{"status": status, "query": _query(name, told=told), "limit": PAGE} for name in names]
    return dict(zip(names, (yield from _pages(asked)), strict=True))


def _pages(asked: Sequence[Mapping[str, Any]]) -> Generator[Calls, Results, list[Tasks]]:
    results = yield tuple(ToolCall("list_tasks", dict(arguments)) for arguments in asked)
    if failed := next((result for result in results if result.error), None):
        raise Stopped(f"I could not read your list: {telling.in_words(failed.error)}")
    pages = [result.page for result in results]
    return [
        Tasks(page.tasks, page.next_cursor, page.total or len(page.tasks), page.now, page.nearest) for page in pages
    ]


def _query(name: str, *, told: bool) -> str:
    """The words by which the tool finds at least all that fit the name: without verbs, and without endings."""
    words = [word for word in tokens(name)[1 if told else 0 :] if word not in UNSAID]
    words = [word for word in words if word not in VERBS] or words or tokens(name)
    stems = [base(word) for word in words[:_MOST_WORDS]]
    stems = [stem.rstrip("y") if len(stem) > 3 else stem for stem in stems]
    return " ".join(stem[:_LONGEST_WORD] for stem in stems) or name[:_LONGEST_WORD]


def known_ids(phrase: str, known: Known, *, told: bool = False) -> list[int]:
    """The numbers of a phrase that need no look-up; where it names nothing, the plan ends with the question which."""
    ids = list(dict.fromkeys(known.chosen.get(phrase) or numbers_in(phrase)))
    if not ids and points(phrase.partition(" ")[2] if told else phrase):
        raise Stopped(NO_SUBJECT)
    return ids
