"""The keyboard, for what prompt_toolkit 3.0 does otherwise than a conversation needs."""

import asyncio
import re
import sys
from contextlib import AbstractContextManager

from prompt_toolkit.input.vt100 import Vt100Input
from prompt_toolkit.key_binding import KeyPress
from prompt_toolkit.keys import Keys

from cli.chat.screen import PASTE_SECONDS

_LINES = re.compile(r"[^\r\n][\r\n]+[^\r\n]")  # one after the other; Enter alone, also twice, ends a message
_MAX_TYPED_KEYS = 200  # that arrive at once
_TEXT_KEYS = (Keys.ControlM, Keys.ControlJ, Keys.ControlI)


class Keyboard(Vt100Input):
    """Takes text that arrives at once for pasted, also where the terminal has no bracketed paste."""

    def __init__(self) -> None:
        super().__init__(sys.stdin)
        self._pasting: asyncio.TimerHandle | None = None

    def cooked_mode(self) -> AbstractContextManager[None]:
        """Stays in raw mode while text is printed above the prompt.

        In cooked mode, the prompt would not recognise Enter and Ctrl-C that are pressed while text is printed.
        """
        return self.raw_mode()

    def read_keys(self) -> list[KeyPress]:
        keys = [key for part in iter(super().read_keys, []) for key in part]
        # A pasted colour looks like an event of the mouse, which fails without the mouse's support.
        keys = [key for key in keys if key.key is not Keys.Vt100MouseEvent]
        typed = [key for key in keys if key.key is not Keys.CPRResponse]
        if any(isinstance(key.key, Keys) and key.key not in _TEXT_KEYS for key in typed):
            return keys
        text = "".join(key.data for key in typed)
        pasted = text.rstrip("\r\n")
        if _LINES.search(text) or (pasted and self._pasting):
            pasted = text
            self._expect_more()
        elif len(pasted) <= _MAX_TYPED_KEYS:  # each of many keys takes longer than the one before
            if text and not pasted:  # Enter sends what was pasted
                self._end_paste()
            return keys
        answers = [key for key in keys if key.key is Keys.CPRResponse]
        return [*answers, KeyPress(Keys.BracketedPaste, pasted), *typed[len(pasted) :]]

    def _expect_more(self) -> None:
        """Waits by a timer: on a busy machine, the event loop reads what has come in the meantime before it ends."""
        self._end_paste()
        self._pasting = asyncio.get_running_loop().call_later(PASTE_SECONDS, self._end_paste)

    def _end_paste(self) -> None:
        if self._pasting is not None:
            self._pasting.cancel()
        self._pasting = None
