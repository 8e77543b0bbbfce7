"""The question which of several tasks is meant, and how its answer is understood."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from offline_model.conversation import Task
from offline_model.rules.intents import Stopped
from offline_model.rules.language.pattern import Phrases, without
from offline_model.rules.language.text import Text
from offline_model.rules.language.words import numbers_in, tokens
from offline_model.rules.lookup import Tasks
from offline_model.rules.telling import one_line

_ASKED = 'Which task do you mean by "'
_GUESSED = 'I could not find "'
_GUESS = re.compile(r'(.*)"\. Did you mean "(.*)" \(([0-9]{1,18})\)\?')
_STATES = {"completed": " (done)"}
_OPTION = re.compile(r"- \*\*([0-9]{1,18})\*\* (.*)")
_ORDINALS = ["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth"]
_POSITIONS = {word: at for at, word in enumerate(_ORDINALS)} | {"former": 0, "last": -1, "latter": -1}
_POSITIONS |= {f"{at + 1}{ending}": at for at in range(20) for ending in ("st", "nd", "rd", "th")}
_POLITE = Phrases.of("please|i mean|the one with|the one|task"), Phrases.of("please")
_NEITHER = Phrases.of("(never mind|nevermind|cancel|stop|forget it|nothing|none|neither|no|nope) [of {them}]")
_ALL = Phrases.of("(both|all) [of {them}]|all (two|three|four|five)|the two")
_YES = Phrases.of(
    "(yes|yep|yeah|y|sure|ok|okay|right|correct|exactly|that one|that's (it|right)) [it is|i did|i do|please]"
)
SHOWN = 20
LONGEST = 400


@dataclass(frozen=True)
class Question:
    """The options fit the phrase; where they are only like it, the question `is_guess`."""

    phrase: str
    options: Sequence[Task]
    is_guess: bool = False

    @classmethod
    def last_in(cls, text: str) -> "Question | None":
        if guess := _GUESS.fullmatch(f"\n{text}".rpartition(f"\n{_GUESSED}")[2].strip("\n")):
            return cls(guess[1], [Task(id=int(guess[3]), title=guess[2])], is_guess=True)
        _, asked, rest = f"\n{text}".rpartition(f"\n{_ASKED}")
        phrase, *lines = rest.split("\n")
        found = [match for line in lines if (match := _OPTION.fullmatch(line))]
        options = [Task(id=int(match[1]), title=match[2].removesuffix(" (done)")) for match in found]
        return cls(phrase.removesuffix('"?'), options) if asked and options else None

    def __str__(self) -> str:
        phrase, first = one_line(self.phrase), self.options[0]
        if self.is_guess and len(self.options) == 1:
            return f'{_GUESSED}{phrase}". Did you mean "{one_line(first.title)}" ({first.id})?'
        lines = [
            f"- **{task.id}** {one_line(task.title)}{_STATES.get(task.status, '')}" for task in self.options[:SHOWN]
        ]
        more = f"These are the first {SHOWN} of {len(self.options)}:\n\n" if len(self.options) > SHOWN else ""
        not_found = f'{_GUESSED}{phrase}".\n\n' if self.is_guess else ""
        return f'{not_found}{_ASKED}{phrase}"?\n\n' + more + "\n".join(lines)

    def answer(self, text: str) -> tuple[int, ...] | None:
        """The numbers chosen; empty if it is none of them, None if the text is no answer."""
        if len(text) > LONGEST:
            return None
        said = without(Text.said(text), *_POLITE)
        text = said.raw.strip(" .!?")
        ids = tuple(task.id for task in self.options)
        if len(said.keys) in _NEITHER.ends(said.keys, 0):
            return ()
        if len(said.keys) in (_YES if len(ids) == 1 else _ALL).ends(said.keys, 0):
            return ids
        if numbers := numbers_in(text):
            at = {id: id for id in ids} if set(numbers) <= set(ids) else dict(enumerate(ids, 1))
            return tuple(at[number] for number in numbers) if set(numbers) <= at.keys() else None
        found = self.at_position(text) or tuple(task.id for task in Tasks(self.options).fitting(text))
        return found if len(found) == 1 else None

    def at_position(self, text: str) -> tuple[int, ...]:
        """The option that "the second" means, if the text is such."""
        words = [word for word in tokens(text) if word not in ("the", "one", "task", "option", "number")]
        at = _POSITIONS.get(words[0]) if len(words) == 1 else None
        return () if at is None or at >= len(self.options) else (self.options[at].id,)


def one_of(phrase: str, found: Sequence[Task]) -> Task:
    """The one task found, of one that was done again and again the last; else the plan ends with the question which."""
    is_same = len({(task.title.casefold(), task.status) for task in found}) == 1 and found[0].status == "completed"
    if len(found) > 1 and not is_same:
        raise Stopped(str(Question(phrase, found)))
    return max(found, key=lambda task: task.completed_at or "")
