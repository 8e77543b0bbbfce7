"""What Tab completes: commands and what goes behind them, conversations, models, and titles of tasks anywhere."""

import re
from collections.abc import Iterable

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

COMMANDS, TASKS = "commands", "tasks"
_BEHIND = {"/open": "threads", "/model": "models", "/tasks": "views"}
_FEWEST = 2  # letters of a title
_WORDS = re.compile(r"\S+")


class Known(Completer):
    """`known` holds the names of each kind; it is filled by whoever learns of them."""

    def __init__(self) -> None:
        self.known: dict[str, list[str]] = {"views": ["today", "upcoming", "all", "done", "deleted"]}

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        text = document.text_before_cursor
        if text.startswith("/") and not text.startswith("//") and "\n" not in text:
            yield from self._of_command(text)
        elif complete_event.completion_requested:
            yield from self._of_task(text)

    def _of_command(self, text: str) -> Iterable[Completion]:
        command, space, rest = text.partition(" ")
        if not space:
            for name in self.known.get(COMMANDS, ()):
                if name.startswith(command):
                    yield Completion(name, -len(command))
            return
        for name in self.known.get(_BEHIND.get(command, ""), ()):
            if rest.lower() in name.lower():
                yield Completion(name, -len(rest))

    def _of_task(self, text: str) -> Iterable[Completion]:
        """Titles that begin as the last words do, those that most of them fit first."""
        for begin in [found.start() for found in _WORDS.finditer(text)]:
            words = text[begin:]
            if len(words) < _FEWEST:
                continue
            for title in self.known.get(TASKS, ()):
                if title.lower().startswith(words.lower()) and title != words:
                    yield Completion(title, -len(words))
