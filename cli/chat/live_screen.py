"""A terminal with lines that stay, live lines below them, and the line that is typed.

One prompt runs from beginning to end, so that a message can be typed while an answer comes.
"""

import asyncio
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.application import run_in_terminal
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.enums import EditingMode
from prompt_toolkit.filters import is_searching
from prompt_toolkit.formatted_text import ANSI, StyleAndTextTuples, to_formatted_text
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.output import ColorDepth

from cli import terminal
from cli.chat.completion import ChatCompleter
from cli.chat.keyboard import Keyboard
from cli.chat.rendering import cut_line
from cli.chat.screen import AGAIN_LEAVES, NOT_TEXT, Completions, OnInterrupt, OnLine, TerminalScreen

_FRAME_SECONDS = 0.1  # between two drawings of an answer that grows
_OTHER_ROWS = 6  # of the terminal, for what is around the live lines


class LiveScreen(TerminalScreen):
    def __init__(self, history: Path, *, colour: bool) -> None:
        super().__init__(colour=colour)
        self.completions = Completions()
        self._completer = ChatCompleter(self.completions)
        self._hint = ""
        self._on_line: OnLine
        self._on_interrupt: OnInterrupt
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
            input=Keyboard(),
        )
        self._app = self._session.app

    @property
    def size(self) -> tuple[int, int]:
        size = self._app.output.get_size()
        return size.columns, size.rows

    async def run(self, on_line: OnLine, on_interrupt: OnInterrupt) -> None:
        self._on_line, self._on_interrupt = on_line, on_interrupt
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
        def write() -> None:
            # Not before its lines are printed, as it is drawn at any time.
            self._open_text = self._open_text if open_text is None else open_text
            sys.stdout.write("".join(f"{line}\n" for line in lines))
            sys.stdout.flush()

        if lines:
            await run_in_terminal(write)
        else:
            write()
            self.redraw()

    async def show_progress(self, text: str) -> None:
        pass

    def redraw(self) -> None:
        self._app.invalidate()

    def fill(self, text: str) -> None:
        self._session.default_buffer.text = text
        self._session.default_buffer.cursor_position = len(text)

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
        self._on_line(text)

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
        if self._on_interrupt():
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
