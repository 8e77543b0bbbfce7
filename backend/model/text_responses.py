"""Reads responses of models that write tool calls as text: text for the user, reasoning and actions."""

import re
from collections.abc import Collection

from backend.model.actions import Action, Fault, Final, looks_like_action, read_object
from backend.model.think_tags import Part
from backend.model.tool_calls import ParsedToolCall

NO_ANSWER = "[NO ANSWER]"

_MARK = r"<tool_call>|```(?:json|tool_call)?(?!\w)|`|\["
_MARKS = ("<tool_call>", "</tool_call>", "```json", "```tool_call")
# What may go on as a mark, where the text ends in the middle of one; the longest first.
_CUT_MARK = "|".join(sorted({mark[:end] for mark in _MARKS for end in range(1, len(mark))}, key=len, reverse=True))
# Possessive and bounded, so that the time for a run of backticks grows with its length only.
_OBJECT = re.compile(rf"""(?<!\s)\s*+(?>(?>{_MARK})\s*+){{0,4}}+(?=\{{\s*["'])""")
_POSSIBLE_OBJECT = re.compile(rf"(?<!\s)\s*+(?>(?!(?:{_CUT_MARK})\Z)(?>{_MARK})\s*+){{0,4}}+(?:{_CUT_MARK}|\{{\s*)?\Z")
_AFTER_ACTION = re.compile(rf"\A(?>(?!(?:{_CUT_MARK})\Z)(?>\s|</?tool_call>|```(?:json|tool_call)?(?!\w)|`|\]|,))*+")
_ONLY_CUT_MARK = re.compile(rf"(?:{_CUT_MARK})?\Z")
_STRING_OR_BRACE = re.compile(r'"(?:\\.|[^"\\])*+(?P<end>"?)|[{}]', re.DOTALL)
_FENCE = "```"
_LONGEST_MARKS = 1_000  # characters before an object, which each piece of the response searches again


class TextResponse:
    """Passes text on, and holds back an object, or what may become one, until it is complete.

    Objects in a code block of another language are text. Text between and after calls is dropped: it was written
    before their outputs were known.
    """

    def __init__(self, tools: Collection[str], *, follows_text: bool = False) -> None:
        self.raw = ""
        self.calls: list[ParsedToolCall] = []
        self.fault: str | None = None
        self.has_text = follows_text
        self._tools = tools
        self._pending = ""
        self._marks = ""  # before the object that is open
        self._object: _ObjectEnd | None = None
        self._is_in_code = False
        self._is_after_action = False
        self._is_separated = follows_text  # from the text before, by an object
        self._answers: list[str] = []
        self._is_final = False
        self._has_thought = False
        self._part = Part()

    def feed(self, text: str) -> Part:
        self.raw += text
        self._pending += text
        while self._pending and self._advance():
            pass
        return self._take_part()

    def finish(self, *, cut_off: bool) -> Part:
        """Returns the rest, with the final answers; an action that is not complete becomes the fault."""
        rest, self._pending = self._marks + self._pending, ""
        if self._object is not None and looks_like_action(rest.removeprefix(self._marks), self._tools):
            self.fault = "it was cut off at the output limit." if cut_off else "it is not valid JSON: it has no end."
        elif not self._is_after_action:
            self._add_text(rest)
        if not self.calls:
            self._add_answers()
            if self._is_final and not self.has_text:
                self._add_text(NO_ANSWER)
        return self._take_part()

    def _take_part(self) -> Part:
        part, self._part = self._part, Part()
        return part

    def _advance(self) -> bool:
        if self._object is not None:
            return self._read_object(self._object)
        if self._is_in_code:
            return self._read_code()
        if self._is_after_action:
            self._pending = _AFTER_ACTION.sub("", self._pending)
            if _ONLY_CUT_MARK.match(self._pending):
                return False
            self._is_after_action = False
        return self._read_text()

    def _read_text(self) -> bool:
        pending, fence = self._pending, self._pending.find(_FENCE)
        begins = _OBJECT.search(pending, 0, fence if fence >= 0 else len(pending))
        if begins is None and fence >= 0:
            before_fence = len(pending[:fence].rstrip())
            begins = _OBJECT.match(pending, before_fence)
            if begins is None and _POSSIBLE_OBJECT.match(pending, before_fence) is None:
                self._is_in_code = True
                self._release(fence + len(_FENCE))
                return True
        if begins is None:
            possible = _POSSIBLE_OBJECT.search(pending)
            length = len(pending) - possible.start() if possible else 0
            self._release(len(pending) - (length if length <= _LONGEST_MARKS else 0))
            return False
        self._release(begins.start())
        self._marks, self._pending = begins[0], self._pending[len(begins[0]) :]
        self._object = _ObjectEnd()
        return True

    def _read_code(self) -> bool:
        end = self._pending.find(_FENCE)
        if end < 0:
            self._release(len(self._pending.rstrip("`")))
            return False
        self._is_in_code = False
        self._release(end + len(_FENCE))
        return True

    def _read_object(self, ends: "_ObjectEnd") -> bool:
        end = ends.find(self._pending)
        if end is None:
            return False
        text, self._pending = self._pending[:end], self._pending[end:]
        marks, self._marks, self._object = self._marks, "", None
        action, thought = read_object(text, self._tools)
        if action is None:
            self._is_in_code = _FENCE in marks
            self._add_text(marks + text)
        else:
            self._take_action(action, thought)
        return True

    def _take_action(self, action: Action, thought: str) -> None:
        self._is_after_action = self._is_separated = True
        if thought and self.fault is None:
            self._part.thought += f"\n{thought}" if self._has_thought else thought
            self._has_thought = True
        match action:
            case ParsedToolCall():
                self.calls.append(action)
            case Final(answer):
                self._is_final = True
                self._answers += [answer] if answer else []
            case Fault(reason):
                self.fault = self.fault or reason

    def _release(self, end: int) -> None:
        text, self._pending = self._pending[:end], self._pending[end:]
        self._add_text(text)

    def _add_text(self, text: str) -> None:
        """Shows text, as a new paragraph after an object; nothing once there is a call or a fault."""
        if not text or self.calls or self.fault:
            return
        if text.strip():
            self._add_answers()
            if self._is_separated and self.has_text:
                text = f"\n\n{text.lstrip()}"
            self._is_separated = False
            self.has_text = True
        self._part.text += text

    def _add_answers(self) -> None:
        answers, self._answers = self._answers, []
        for answer in answers:
            self._is_separated = True
            self._add_text(answer)
            self._is_separated = True


class _ObjectEnd:
    """Finds the brace that closes the object with which a growing text begins."""

    def __init__(self) -> None:
        self._position = 0
        self._depth = 0

    def find(self, text: str) -> int | None:
        """Returns the position after the closing brace, or None. It goes on where the last call stopped."""
        while token := _STRING_OR_BRACE.search(text, self._position):
            if token[0][0] == '"':
                if not token["end"]:
                    break
            else:
                self._depth += 1 if token[0] == "{" else -1
                if self._depth == 0:
                    return token.end()
            self._position = token.end()
        return None
