"""A terminal with lines that stay, live lines below them, and the line that is typed.

One application of prompt_toolkit runs from beginning to end, so that a message can be typed while an answer comes.
"""

import asyncio
import re
import sys
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.enums import EditingMode
from prompt_toolkit.filters import is_searching
from prompt_toolkit.formatted_text import ANSI, StyleAndTextTuples, to_formatted_text
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.input.posix_utils import PosixStdinReader
from prompt_toolkit.input.vt100 import Vt100Input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys
from prompt_toolkit.output import ColorDepth

from cli import terminal
from cli.chat.commands.table import COMMANDS
from cli.chat.commands.tasks import VIEWS
from cli.chat.connection import Connection
from cli.chat.rendering import cut_line
from cli.chat.screen import AGAIN_LEAVES, NOT_TEXT, PASTE_SECONDS, TerminalScreen
from cli.terminal import clean

if TYPE_CHECKING:
    from cli.chat.terminal_chat import TerminalChat

_SYNC_BEGIN, _SYNC_END = "\x1b[?2026h", "\x1b[?2026l"  # draw all of it at once; other terminals ignore them
_FRAME_SECONDS = 0.1  # between two drawings of an answer that grows
_OTHER_ROWS = 6  # of the terminal, for what is around the live lines
_PASTE_BEGIN, _PASTE_END = "\x1b[200~", "\x1b[201~"
_LINES = re.compile(r"[^\r\n][\r\n]+[^\r\n]")  # one after the other; Enter alone, also twice, ends a message
_CURSOR = re.compile(r"\x1b\[\d+;\d+R")  # the terminal's answer where the cursor is
_KEYS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")  # that are no text
_MOST_KEYS = 200  # that arrive at once
_COMPLETED = {"/open": "chats", "/model": "models", "/tasks": "views"}
_FEWEST = 2  # letters of a title


class ChatCompleter(Completer):
    def __init__(self) -> None:
        self.names: dict[str, list[str]] = {"views": [*VIEWS], "commands": [f"/{name}" for name in COMMANDS]}

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        text = document.text_before_cursor
        if text.startswith("/") and not text.startswith("//") and "\n" not in text:
            command, space, rest = text.partition(" ")
            names = self.names.get(_COMPLETED.get(command, "") if space else "commands", ())
            typed = rest if space else command
            matches = (name for name in names if (typed.lower() in name.lower() if space else name.startswith(typed)))
            yield from (Completion(name, -len(typed)) for name in matches)
        elif complete_event.completion_requested:
            for begin in (found.start() for found in re.finditer(r"\S+", text)):
                words = text[begin:]
                for title in self.names.get("tasks", ()) if len(words) >= _FEWEST else ():
                    if title.lower().startswith(words.lower()) and title != words:
                        yield Completion(title, -len(words))


class _PasteReader(PosixStdinReader):
    """Marks several lines that arrive at once as pasted, as terminals with bracketed paste do themselves."""

    def __init__(self) -> None:
        super().__init__(sys.stdin.fileno(), encoding=sys.getfilesystemencoding())  # as of arguments
        self._end = ""
        self._is_marked = False
        self._pasted_at = -PASTE_SECONDS

    def read(self, count: int = 1024) -> str:
        text = "".join(iter(partial(super().read, count), ""))
        was_marked, seen = self._is_marked, self._end + text
        begin, end = seen.rfind(_PASTE_BEGIN), seen.rfind(_PASTE_END)
        self._is_marked = begin > end if begin != end else was_marked
        self._end = seen[1 - len(_PASTE_BEGIN) :]
        typed, now = _CURSOR.sub("", text), time.monotonic()
        if was_marked or self._is_marked or not typed or _KEYS.search(typed):
            return text
        continues = now - self._pasted_at < PASTE_SECONDS and typed.strip("\r\n")
        pasted = typed
        if _LINES.search(typed) or continues:
            self._pasted_at = now
        elif len(pasted := typed.rstrip("\r\n")) <= _MOST_KEYS:  # each of many keys takes longer than the one before
            return text
        return "".join([*_CURSOR.findall(text), _PASTE_BEGIN, pasted, _PASTE_END, typed[len(pasted) :]])


class LiveScreen(TerminalScreen):
    def __init__(self, history: Path, *, colour: bool) -> None:
        super().__init__(colour=colour)
        self._completer = ChatCompleter()
        self._printing = asyncio.Lock()
        self._hint = ""
        self._chat: TerminalChat
        keyboard = Vt100Input(sys.stdin)
        keyboard.stdin_reader = _PasteReader()
        self._session: PromptSession[None] = PromptSession(
            self._render_prompt,
            multiline=True,
            prompt_continuation="  ",
            key_bindings=self._bind_keys(),
            completer=self._completer,
            complete_while_typing=True,
            history=_open_history(history),
            editing_mode=EditingMode.EMACS,
            color_depth=None if colour else ColorDepth.DEPTH_1_BIT,
            reserve_space_for_menu=4,
            erase_when_done=True,
            input=keyboard,
        )
        self._app = self._session.app

    @property
    def size(self) -> tuple[int, int]:
        size = self._app.output.get_size()
        return size.columns, size.rows

    async def run(self, chat: "TerminalChat") -> None:
        self._chat = chat
        drawing = asyncio.create_task(self._draw())
        try:
            with suppress(EOFError):  # Ctrl-D
                await self._session.prompt_async()
        finally:
            drawing.cancel()

    async def _draw(self) -> None:
        while True:
            await asyncio.sleep(_FRAME_SECONDS)
            if self.describe_status():
                self.redraw()

    async def print_lines(self, lines: Sequence[str], *, open_text: str | None = None) -> None:
        async with self._printing:
            if lines and self._app.is_running and self._app.output.responds_to_cpr:
                await self._app.renderer.wait_for_cpr_responses()
            # Not before its lines are printed, as it is drawn at any time.
            self._open_text = self._open_text if open_text is None else open_text
            if lines:
                self._print("".join(f"{line}\n" for line in lines))
            else:
                self.redraw()

    def _print(self, text: str) -> None:
        """Prints above the prompt, as `in_terminal` of prompt_toolkit 3.0 does.

        `in_terminal` also leaves raw mode, in which Enter and Ctrl-C are other characters than the prompt expects.
        """
        app, output = self._app, self._app.output
        if app.is_running:
            output.write_raw(_SYNC_BEGIN)
            app.renderer.erase()
        sys.stdout.write(text)
        sys.stdout.flush()
        if not app.is_running:
            return
        app.renderer.reset()
        if not app.key_processor.input_queue:
            app.renderer.request_absolute_cursor_position()
        app.render_counter += 1  # else what was drawn before is taken for what is to be drawn
        if app.context is not None:
            app.context.copy().run(app.renderer.render, app, app.layout)
        output.write_raw(_SYNC_END)
        output.flush()

    def redraw(self) -> None:
        self._app.invalidate()

    def fill(self, text: str) -> None:
        self._session.default_buffer.text = text
        self._session.default_buffer.cursor_position = len(text)

    async def learn_names(self, connection: Connection) -> None:
        names, runs = self._completer.names, connection.runs
        names["tasks"] = [clean(task["title"]) for task in (await runs.tasks("all"))["tasks"]]
        names["chats"] = [clean(chat["title"]) for chat in (await runs.get_chats(limit=20))["chats"] if chat["title"]]
        names["models"] = list((await runs.ready()).get("model", {}).get("models", ()))

    def leave(self) -> None:
        if self._app.is_running and not self._app.is_done:
            self._app.exit()

    def _render_prompt(self) -> StyleAndTextTuples:
        live = self.render_text(self._open_text)[-max(self.size[1] - _OTHER_ROWS, 3) :]
        below = [cut_line((text, "dim")) for text in [self._hint or self.describe_status()] if text]
        lines = [*live, *self._render(*below)]
        above = to_formatted_text(ANSI("".join(f"{line}\n" for line in lines)))
        return [*above, ("bold" if self.colour else "", self.prompt)]

    def _bind_keys(self) -> KeyBindings:
        keys = KeyBindings()
        for key, handler in (
            (("enter",), self._enter),
            (("escape", "enter"), _insert_line),
            (("c-j",), _insert_line),
            (("tab",), self._complete),
            (("c-c",), self._interrupt),
        ):
            keys.add(*key, filter=~is_searching)(handler)
        keys.add(Keys.Vt100MouseEvent)(
            lambda _: None
        )  # a pasted colour looks like one to prompt_toolkit 3.0, and fails
        return keys

    def _enter(self, event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if buffer.complete_state and buffer.complete_state.current_completion:
            buffer.complete_state = None
            return
        if buffer.text.endswith("\\") and buffer.cursor_position == len(buffer.text):
            buffer.delete_before_cursor()
            buffer.insert_text("\n")
            return
        text = buffer.text
        if not terminal.is_text(text):
            buffer.text, self._hint = terminal.mark_undecoded(text), NOT_TEXT
            return
        buffer.reset(append_to_history=bool(text.strip()))
        self._hint = ""
        self._chat.entered(text)

    def _complete(self, event: KeyPressEvent) -> None:
        """Completes at once if there is one way, else what all ways have in common, then one after the other."""
        buffer = event.current_buffer
        found = [*self._completer.get_completions(buffer.document, CompleteEvent(completion_requested=True))]
        if len(found) == 1:
            buffer.cancel_completion()
            buffer.apply_completion(found[0])
        elif buffer.complete_state:
            buffer.complete_next()
        else:
            buffer.start_completion(insert_common_part=True)

    def _interrupt(self, event: KeyPressEvent) -> None:
        hint, self._hint = self._hint, ""
        if self._chat.interrupted():
            return
        if event.current_buffer.text:
            event.current_buffer.reset()
        elif hint:
            event.app.exit()
        else:
            self._hint = AGAIN_LEAVES


def _insert_line(event: KeyPressEvent) -> None:
    event.current_buffer.insert_text("\n")


def _open_history(path: Path) -> History:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(mode=0o600)
    except OSError:
        return InMemoryHistory()
    return FileHistory(path)
