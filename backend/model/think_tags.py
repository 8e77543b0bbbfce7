"""Reasoning that a model writes into its text, as in `<think>…</think>answer`."""

import re

_NAMES = "think|thinking|thought|reasoning"
_OPENING = re.compile(rf"<(?:{_NAMES})>|\[THINK\]", re.IGNORECASE)
_CLOSING = re.compile(rf"</(?:{_NAMES})>|\[/THINK\]", re.IGNORECASE)
_CUT_TAG = re.compile(r"(?:<[/a-z]*|\[[/a-z]*)?\Z", re.IGNORECASE)
_MAX_TAG_CHARS = len("</reasoning>")


class ThinkTags:
    """Divides text into reasoning and answer, however it is cut into pieces.

    Reasoning begins at the start of the text or right after other reasoning: elsewhere a tag is text. The chat template
    of some models writes the opening tag into the prompt, so that only the closing one is sent. With
    `begins_thinking`, the text is taken to begin with reasoning; without, what was sent before the closing tag has
    been shown as text and stays it, and `lacks_opening` is set.
    """

    def __init__(self, *, begins_thinking: bool = False) -> None:
        self.lacks_opening = False
        self.has_closed = False
        self._pending = self._text = self._thought = ""
        self._last = ""  # character of the text that was returned
        self._is_thinking = begins_thinking
        self._may_open = True
        self._unopened: list[str] | None = [] if begins_thinking else None

    def feed(self, text: str) -> tuple[str, str]:
        """Returns what is known to be answer and what is known to be reasoning now."""
        self._pending += text
        self._text = self._thought = ""
        while self._pending and self._advance():
            pass
        return self._text, self._thought

    def finish(self) -> tuple[str, str]:
        """Returns the rest, at the end of the text. Reasoning that was neither opened nor closed is the answer."""
        rest, self._pending = self._pending, ""
        if self._is_thinking and self._unopened is None:
            return "", rest
        return "".join(self._unopened or ()) + rest, ""

    def _advance(self) -> bool:
        if self._may_open:
            if self.has_closed:
                self._pending = self._pending.lstrip()
            start = self._pending.lstrip()
            if opening := _OPENING.match(start):  # a model whose template has the tag may write it all the same
                self._pending = start[opening.end() :].lstrip()
                self._is_thinking, self._may_open, self._unopened = True, False, None
                return True
            if _CUT_TAG.match(start) and len(start) < _MAX_TAG_CHARS:
                return False
            self._may_open = False
        return self._read_thought() if self._is_thinking else self._read_text()

    def _read_thought(self) -> bool:
        closing = _CLOSING.search(self._pending)
        thought = self._take_complete_text() if closing is None else self._pending[: closing.start()]
        self._thought += thought
        if self._unopened is not None:
            self._unopened.append(thought)
        if closing is None:
            return False
        self.lacks_opening = self._unopened is not None
        self._pending = self._pending[closing.end() :].lstrip()
        self._is_thinking, self._may_open, self.has_closed, self._unopened = False, True, True, None
        return True

    def _read_text(self) -> bool:
        closing = None if self.has_closed else _CLOSING.search(self._pending)
        if closing is None:
            self._add_text(self._take_complete_text())
            return False
        before, after = self._pending[: closing.start()], self._pending[closing.end() :]
        last = before[-1:] or self._last
        if last not in ("", "\n") and not after:
            return False  # until it is known what follows
        if last in ("", "\n") or after[0] == "\n":
            self._add_text(before)
            self._pending = after
            self._may_open = not last
            self.lacks_opening = self.has_closed = True
        else:  # in the middle of a line, as in a text about tags
            self._add_text(self._pending[: closing.end()])
            self._pending = after
        return True

    def _add_text(self, text: str) -> None:
        self._text += text
        self._last = text[-1:] or self._last

    def _take_complete_text(self) -> str:
        """Takes the pending text, but for an end that may be the beginning of a tag."""
        begin = max(self._pending.rfind("<"), self._pending.rfind("["))
        is_cut = begin >= 0 and len(self._pending) - begin < _MAX_TAG_CHARS and _CUT_TAG.match(self._pending, begin)
        end = begin if is_cut else len(self._pending)
        released, self._pending = self._pending[:end], self._pending[end:]
        return released
