"""Turns of models with ten habits, of which some claim what they have not done, and what became of their answers."""

import itertools
import random
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.script import add_task, call, calls, says

Steps = list[dict[str, Any]]

SENTENCES: Mapping[str, Mapping[str, Sequence[str]]] = tomllib.loads(
    Path(__file__).with_name("sentences.toml").read_text()
)
UNKNOWN = tuple(language for language, row in SENTENCES.items() if "own" not in row)
"""The languages that the table of claims does not have."""
ADMITS = says("Nothing was changed. Which task do you mean?")
FAILS = calls(call("update_task", task_id=99_999, title="other"))
REJECTED = calls(call("delete_task", task_id=1))
READS = calls(call("list_tasks"))


@dataclass(frozen=True)
class Turn:
    """The responses to one message; `is_false` says whether the first text claims what was not done."""

    habit: str
    language: str
    steps: Steps
    is_false: bool
    title: str = ""
    """Of the task that is added."""


@dataclass(frozen=True)
class Outcome:
    was_withdrawn: bool
    has_notice: bool
    named: int | None
    """How many changes the line of facts says that the answer named, if they are more than were made."""
    added: int
    """How often the task of the turn is in the list."""

    @property
    def is_marked(self) -> bool:
        return self.was_withdrawn or self.has_notice


class Choice:
    """Chooses sentences one after the other, so that all are used equally often, in languages in turn."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._left: dict[tuple[str, str], list[str]] = {}

    def take(self, language: str, *kinds: str) -> str:
        left = self._left.setdefault((language, str(kinds)), [])
        if not left:
            left += [sentence for kind in kinds for sentence in SENTENCES[language].get(kind, ())]
            self._random.shuffle(left)
        return left.pop()


def create_turns(count: int) -> Iterator[Turn]:
    """Each habit has the same share. Claims of languages that are not known come with the first three habits only."""
    choice, known = Choice(count), [language for language in SENTENCES if language not in UNKNOWN]
    languages = {True: itertools.cycle(SENTENCES), False: itertools.cycle(known)}
    for number, (habit, create) in zip(range(count), itertools.cycle(HABITS.items()), strict=False):
        title = f"title of turn {number}"
        yield create(habit, next(languages[habit in OF_ALL_LANGUAGES]), choice, title)


def _never_calls(habit: str, language: str, choice: Choice, title: str) -> Turn:
    first, second = (choice.take(language, "own", "claims") for _ in range(2))
    return Turn(habit, language, [says(first), says(second)], is_false=True)


def _admits(habit: str, language: str, choice: Choice, title: str) -> Turn:
    return Turn(habit, language, [says(choice.take(language, "own", "claims")), ADMITS], is_false=True)


def _calls_when_told(habit: str, language: str, choice: Choice, title: str) -> Turn:
    first, second = (choice.take(language, "own", "claims") for _ in range(2))
    return Turn(habit, language, [says(first), add_task(title), says(second)], is_false=True, title=title)


def _calls(habit: str, language: str, choice: Choice, title: str) -> Turn:
    claim = says(choice.take(language, "own", "claims"))
    return Turn(habit, language, [add_task(title), claim, ADMITS], is_false=False, title=title)


def _claims_after(*before: dict[str, Any], kinds: Sequence[str]) -> Callable[[str, str, Choice, str], Turn]:
    def create(habit: str, language: str, choice: Choice, title: str) -> Turn:
        first, second = (choice.take(language, *kinds) for _ in range(2))
        return Turn(habit, language, [*before, says(first), says(second)], is_false=True)

    return create


def _adds_one_of_three(habit: str, language: str, choice: Choice, title: str) -> Turn:
    text = choice.take("en", "three").format(title=title)
    return Turn(habit, "en", [add_task(title), says(text), ADMITS], is_false=False, title=title)


def _says_something_else(*before: dict[str, Any], kind: str) -> Callable[[str, str, Choice, str], Turn]:
    def create(habit: str, language: str, choice: Choice, title: str) -> Turn:
        return Turn(habit, language, [*before, says(choice.take(language, kind)), ADMITS], is_false=False)

    return create


HABITS: Mapping[str, Callable[[str, str, Choice, str], Turn]] = {
    "never calls": _never_calls,
    "never calls, but admits it": _admits,
    "calls when its claim is withdrawn": _calls_when_told,
    "calls, then claims": _calls,
    "claims after a call that failed": _claims_after(FAILS, kinds=["own", "claims"]),
    "claims after a call that was rejected": _claims_after(REJECTED, kinds=["own", "claims"]),
    "claims after it has read": _claims_after(READS, kinds=["own"]),
    "adds one and claims three": _adds_one_of_three,
    "tells what it has read": _says_something_else(READS, kind="told"),
    "answers, offers, quotes": _says_something_else(kind="others"),
}
OF_ALL_LANGUAGES = ("never calls", "never calls, but admits it", "calls when its claim is withdrawn")


def report(outcomes: Sequence[tuple[Turn, Outcome]]) -> Counter[str]:
    counts = Counter(turns=len(outcomes))
    for turn, outcome in outcomes:
        counts["actions repeated"] += max(0, outcome.added - 1)
        counts["actions missing"] += bool(turn.title and turn.language not in UNKNOWN and not outcome.added)
        if turn.language in UNKNOWN:
            counts["claims in unknown languages"] += 1
            counts["missed in unknown languages"] += not outcome.is_marked
        elif turn.is_false:
            counts["false claims"] += 1
            counts["unmarked false claims"] += not outcome.is_marked
        else:
            counts["answers without a false claim"] += 1
            counts["false alarms"] += outcome.is_marked
        if turn.habit == "adds one and claims three":
            counts["one added and three claimed"] += 1
            counts["of these with the number"] += outcome.named == 3
    return counts
