"""The question which of several tasks is meant, and how its answer is understood."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from offline_model.rules.sentences import one_line
from offline_model.rules.words import compiled, fitting, numbers_in, tokens

_QUESTION = re.compile(r'^Which task do you mean by "(?P<phrase>.*)"\?$', re.MULTILINE)
_OPTION = re.compile(r"^- \*\*(?P<id>[0-9]+)\*\* (?P<title>.*?)(?: \(done\))?$", re.MULTILINE)
_ORDINALS = ["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth"]
_NEITHER = re.compile(
    r"(?:never ?mind|cancel|stop|forget it|nothing|none|neither|no|nope)(?: of (?:them|these|those))?", re.IGNORECASE
)
_POLITE = compiled(r"^(?:please|i mean|the one with|the one|task) |[\s.!?]+$| please\W*$")
_ALL = re.compile(r"(?:both|all)(?: of (?:them|these|those))?|all (?:two|three|four|five)|the two", re.IGNORECASE)
SHOWN = 20
LONGEST = 400


@dataclass(frozen=True)
class Question:
    phrase: str
    options: tuple[tuple[int, str], ...]

    @classmethod
    def last_in(cls, text: str) -> "Question | None":
        asked = list(_QUESTION.finditer(text))
        if not asked:
            return None
        options = tuple((int(match["id"]), match["title"]) for match in _OPTION.finditer(text, asked[-1].end()))
        return cls(asked[-1]["phrase"], options) if options else None

    def answer(self, text: str) -> tuple[int, ...] | None:
        """The numbers chosen; empty if it is none of them, None if the text is no answer."""
        if len(text) > LONGEST:
            return None
        text = _POLITE.sub("", text.strip())
        if _NEITHER.fullmatch(text):
            return ()
        ids = tuple(id for id, _ in self.options)
        if _ALL.fullmatch(text):
            return ids
        if numbers := numbers_in(text):
            return self._numbered(numbers, ids)
        if position := _position(text, len(ids)):
            return (ids[position - 1],)
        found = fitting(text, [title for _, title in self.options]) if text else []
        return (ids[found[0]],) if len(found) == 1 else None

    def pointed_at(self, phrases: Iterable[str]) -> dict[str, tuple[int, ...]]:
        """The options that phrases such as "the second" of a new request mean."""
        positions = {phrase: _position(phrase, len(self.options)) for phrase in phrases}
        return {phrase: (self.options[at - 1][0],) for phrase, at in positions.items() if at}

    def _numbered(self, numbers: tuple[int, ...], ids: tuple[int, ...]) -> tuple[int, ...] | None:
        if set(numbers) <= set(ids):
            return numbers
        if all(1 <= number <= len(ids) for number in numbers):
            return tuple(ids[number - 1] for number in numbers)
        return None


def ask(phrase: str, tasks: Sequence[dict[str, Any]]) -> str:
    lines = [
        f"- **{task['id']}** {one_line(task['title'])}{' (done)' if task.get('status') == 'completed' else ''}"
        for task in tasks[:SHOWN]
    ]
    more = f"These are the first {SHOWN} of {len(tasks)}:\n\n" if len(tasks) > SHOWN else ""
    return f'Which task do you mean by "{one_line(phrase)}"?\n\n' + more + "\n".join(lines)


def ask_again(question: Question) -> str:
    return "Please choose one by its number.\n\n" + ask(
        question.phrase, [{"id": id, "title": title} for id, title in question.options]
    )


def _position(text: str, count: int) -> int | None:
    words = [word for word in tokens(text) if word not in ("the", "one", "task", "option", "number")]
    if words == ["last"]:
        return count
    if words == ["former"]:
        return 1
    if words == ["latter"]:
        return count
    if len(words) != 1:
        return None
    word = words[0]
    numeral = re.fullmatch(r"([0-9]{1,2})(?:st|nd|rd|th)", word)
    position = int(numeral[1]) if numeral else _ORDINALS.index(word) + 1 if word in _ORDINALS else 0
    return position if 1 <= position <= count else None
