import re
from collections.abc import Iterable

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from cli.chat.screen import Completions

_MIN_LETTERS = 2  # of a title


class ChatCompleter(Completer):
    def __init__(self, completions: Completions) -> None:
        self._completions = completions

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        text, arguments = document.text_before_cursor, self._completions.arguments
        if text.startswith("/") and not text.startswith("//") and "\n" not in text:
            command, space, typed = text.partition(" ")
            if space:
                names = [name for name in arguments.get(command, ()) if typed.lower() in name.lower()]
            else:
                typed, names = command, [name for name in arguments if name.startswith(command)]
            yield from (Completion(name, -len(typed)) for name in names)
        elif complete_event.completion_requested:
            for begin in (found.start() for found in re.finditer(r"\S+", text)):
                words = text[begin:]
                for title in self._completions.titles if len(words) >= _MIN_LETTERS else ():
                    if title.lower().startswith(words.lower()) and title != words:
                        yield Completion(title, -len(words))
