"""A terminal with lines that stay, a block below them that still changes, and the line that is typed.

One application of prompt_toolkit's runs from beginning to end, so that a message can be typed while an answer comes.
"""

import asyncio
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer
from prompt_toolkit.enums import EditingMode
from prompt_toolkit.filters import is_searching
from prompt_toolkit.formatted_text import ANSI
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.output import ColorDepth

from cli.chat.screens.screen import AGAIN_LEAVES, TWICE_SECONDS, Person, Screen
from cli.chat.screens.text import Style

_SYNC_BEGIN, _SYNC_END = "\x1b[?2026h", "\x1b[?2026l"  # draw all of it at once; who does not know them passes them over
_LINES_KEPT = 6  # of the terminal, for what stands around the block


class Live(Screen):
    def __init__(self, completer: Completer, history: Path, *, style: Style) -> None:
        super().__init__(style)
        self._block: Sequence[str] = ()
        self._one_at_a_time = asyncio.Lock()
        self._interrupted_at = -TWICE_SECONDS
        self._hint = ""
        self._person: Person | None = None
        self._session: PromptSession[None] = PromptSession(
            self._message,
            multiline=True,
            prompt_continuation="  ",
            key_bindings=self._keys(completer),
            completer=completer,
            complete_while_typing=True,
            history=_history(history),
            editing_mode=EditingMode.EMACS,
            color_depth=None if style.colour else ColorDepth.DEPTH_1_BIT,
            reserve_space_for_menu=4,
            erase_when_done=True,
        )
        self._app = self._session.app

    @property
    def size(self) -> tuple[int, int]:
        """Columns that may be written in, and rows."""
        size = self._app.output.get_size()
        return max(size.columns - 1, 20), size.rows

    async def run(self, person: Person, ready: Callable[[], None]) -> None:
        self._person = person
        await self._session.prompt_async(pre_run=ready)

    async def show(self, *lines: str, block: Sequence[str] | None = None) -> None:
        async with self._one_at_a_time:
            await self._show(lines, block)

    async def _show(self, lines: Sequence[str], block: Sequence[str] | None) -> None:
        if lines and self._app.is_running and self._app.output.responds_to_cpr:
            await self._app.renderer.wait_for_cpr_responses()
        self._block = self._block if block is None else block  # not before its lines: it is drawn at any time
        if not lines:
            self.redraw()
        elif self._app.is_running:
            self._print(lines)
        else:
            _write(lines)

    def _print(self, lines: Sequence[str]) -> None:
        """As prompt_toolkit's `in_terminal`, which lets the terminal read meanwhile: there a key may be another."""
        app, output = self._app, self._app.output
        output.write_raw(_SYNC_BEGIN)
        app.renderer.erase()
        _write(lines)
        app.renderer.reset()
        if not app.key_processor.input_queue:
            app.renderer.request_absolute_cursor_position()
        app.render_counter += 1  # or what was drawn before would be taken for what is to be drawn
        if app.context is not None:
            app.context.copy().run(app.renderer.render, app, app.layout)
        output.write_raw(_SYNC_END)
        output.flush()

    def redraw(self) -> None:
        self._app.invalidate()

    def fill(self, text: str) -> None:
        self._session.default_buffer.text = text
        self._session.default_buffer.cursor_position = len(text)

    def waits(self) -> None:
        """The line is there all the time."""

    def leave(self) -> None:
        if self._app.is_running and not self._app.is_done:
            self._app.exit()

    def _message(self) -> ANSI:
        _, rows = self.size
        shown = [*self._block][-max(rows - _LINES_KEPT, 3) :]
        below = self._hint or self.status
        lines = [*shown, *([self.style.dim(below)] if below else []), self.style.bold(self.mark)]
        return ANSI("\n".join(lines))

    def _keys(self, completer: Completer) -> KeyBindings:
        keys = KeyBindings()
        for key, does in (
            (("enter",), self._enter),
            (("escape", "enter"), _new_line),
            (("c-j",), _new_line),
            (("tab",), partial(_complete, completer)),
            (("c-c",), self._interrupt),
            (("c-d",), _end),
        ):
            keys.add(*key, filter=~is_searching)(does)
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
        buffer.reset(append_to_history=bool(text.strip()))
        self._hint = ""
        if self._person is not None:
            self._person.entered(text)

    def _interrupt(self, event: KeyPressEvent) -> None:
        hint, self._hint = self._hint, ""
        if self._person is not None and self._person.interrupted():
            return
        if event.current_buffer.text:
            event.current_buffer.reset()
        elif hint and time.monotonic() - self._interrupted_at < TWICE_SECONDS:
            event.app.exit()
        else:
            self._interrupted_at, self._hint = time.monotonic(), AGAIN_LEAVES


def _new_line(event: KeyPressEvent) -> None:
    event.current_buffer.insert_text("\n")


def _complete(completer: Completer, event: KeyPressEvent) -> None:
    """All of it where there is one way only, else what all have in common, and then one after the other."""
    buffer = event.current_buffer
    found = [*completer.get_completions(buffer.document, CompleteEvent(completion_requested=True))]
    if len(found) == 1:
        buffer.cancel_completion()
        buffer.apply_completion(found[0])
    elif buffer.complete_state:
        buffer.complete_next()
    else:
        buffer.start_completion(insert_common_part=True)


def _end(event: KeyPressEvent) -> None:
    if event.current_buffer.text:
        event.current_buffer.delete()
    else:
        event.app.exit()


def _history(path: Path) -> History:
    """What was typed before, for its owner only; where nothing can be kept, of this start."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(mode=0o600)
    except OSError:
        return InMemoryHistory()
    return FileHistory(path)


def _write(lines: Sequence[str]) -> None:
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    sys.stdout.flush()
