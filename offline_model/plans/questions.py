"""Compares titles with a phrase, asks which task is meant, and reads the answer."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from offline_model.conversation import ResultTask
from offline_model.language import words
from offline_model.language.text import Template, Text
from offline_model.plans import Stop
from offline_model.replies import join_lines, shorten_list

_ASKS = 'Which task do you mean by "'
_DONE = " (done)"
_OPTION = re.compile(r"- \*\*([0-9]{1,18})\*\* (.*)")
_POLITE, _PLEASE = Template("please|i mean|the one with|the one|task"), Template("please")
_NEITHER = Template("(never mind|nevermind|cancel|stop|forget it|nothing|none|neither|no|nope) [of <them>]")
_YES = Template(
    "(yes|yep|yeah|y|sure|ok|okay|right|correct|exactly|that one|that's (it|right)) [it is|i did|i do|please]"
)
_MAX_OPTIONS = 20
_MAX_ANSWER_LENGTH = 400  # characters
_MAX_WORD_LENGTH = 30  # letters
_MAX_WORDS = 6
_ALIKE = 0.75


def find_by_title(phrase: str, tasks: Sequence[ResultTask], *, is_deed: bool = False) -> list[ResultTask]:
    """Returns equal titles, else those of the same words, else those with all words; a deed's verb may be absent."""
    tokens, wanted = words.tokens(phrase), words.find_stems(phrase)
    equal = [task for task in tasks if tokens and words.tokens(task.title) == tokens]
    alike = [task for task in tasks if wanted and words.find_stems(task.title) == wanted]
    found = equal or alike or [task for task in tasks if wanted and wanted <= words.find_stems(task.title)]
    if found or not is_deed:
        return found
    is_any = tokens[0] in ("did", "done", "got", "finished", "completed")
    found = find_by_title(" ".join(tokens[1:]), tasks)
    return [task for task in found if is_any or words.tokens(task.title)[0] not in words.VERBS]


def find_by_words(phrase: str, tasks: Sequence[ResultTask]) -> list[ResultTask]:
    wanted = words.find_stems(phrase)
    texts = [(task, f"{task.title} {task.description or ''} {' '.join(task.labels)}") for task in tasks]
    return [task for task, text in texts if wanted <= words.find_stems(text)]


def find_similar(phrase: str, tasks: Sequence[ResultTask], *, is_deed: bool = False) -> list[ResultTask]:
    wanted = words.find_stems(phrase.partition(" ")[2] if is_deed else phrase)
    wanted = [word[:_MAX_WORD_LENGTH] for word in wanted][:_MAX_WORDS]
    titles = [(task, words.tokens(task.title)) for task in tasks if wanted]
    return [task for task, title in titles if all(get_close_matches(word, title, 1, _ALIKE) for word in wanted)]


@dataclass(frozen=True)
class WhichTask:
    """Asks which option a phrase means; with `is_guess` the titles are only similar."""

    phrase: str
    options: Sequence[ResultTask]
    is_guess: bool = False

    @classmethod
    def find_last(cls, text: str) -> "WhichTask | None":
        _, asked, rest = f"\n{text}".rpartition(f"\n{_ASKS}")
        phrase, *lines = rest.split("\n")
        found = [match for line in lines if (match := _OPTION.fullmatch(line))]
        options = [ResultTask(id=int(match[1]), title=match[2].removesuffix(_DONE)) for match in found]
        return cls(phrase.removesuffix('"?'), options) if asked and options else None

    def __str__(self) -> str:
        phrase = join_lines(self.phrase)
        not_found = f'I could not find "{phrase}".\n\n' if self.is_guess else ""
        lines = [
            f"- **{task.id}** {join_lines(task.title)}{_DONE if task.status == 'completed' else ''}"
            for task in self.options
        ]
        return f'{not_found}{_ASKS}{phrase}"?\n\n{shorten_list(lines, _MAX_OPTIONS)}'

    @property
    def ids(self) -> tuple[int, ...]:
        return tuple(task.id for task in self.options)

    def answer(self, text: str) -> tuple[int, ...] | None:
        """Returns the chosen numbers; empty if none is meant, None if the text is no answer."""
        if len(text) > _MAX_ANSWER_LENGTH:
            return None
        reply = _PLEASE.strip_trailing(_POLITE.strip_leading(Text.parse_message(text)))
        text = reply.raw.strip(" .!?")
        if _NEITHER.matches(reply):
            return ()
        if len(self.ids) == 1 and _YES.matches(reply):
            return self.ids
        if numbers := words.find_numbers(text):
            at = {id: id for id in self.ids} if set(numbers) <= set(self.ids) else dict(enumerate(self.ids, 1))
            return tuple(at[number] for number in numbers) if set(numbers) <= at.keys() else None
        named = tuple(task.id for task in find_by_title(text, self.options))
        return words.choose_pointed(text, self.ids) or (named if len(named) == 1 else None)


def choose_task(phrase: str, found: Sequence[ResultTask]) -> ResultTask:
    """Returns the last of completed tasks with one title; else asks which of several is meant."""
    is_same = len({(task.title.casefold(), task.status) for task in found}) == 1 and found[0].status == "completed"
    if len(found) > 1 and not is_same:
        raise Stop(str(WhichTask(phrase, found)))
    return max(found, key=lambda task: task.completed_at or "")
