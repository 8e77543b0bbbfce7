"""Reads responses of models that write tool calls as text: text for the user, reasoning and actions."""

import re
from collections.abc import Collection, Iterator

from backend.model.actions import Action, Fault, Final, looks_like_action, read_object
from backend.model.think_tags import Part
from backend.model.tool_calls import ParsedToolCall

NO_ANSWER = "[NO ANSWER]"

# Possessive and bounded, so that the time for a run of backticks grows with its length only.
_MARK = r"<tool_call>|```(?:json|tool_call)?(?!\w)|`|\["
_OBJECT = rf"""(?<!\s)\s*+(?>(?>{_MARK})\s*+){{0,4}}+(?=\{{\s*["'])"""
_OBJECT_OR_CODE = re.compile(rf"(?P<marks>{_OBJECT})|```.*?(?:```|\Z)", re.DOTALL)
# What is held back has room for more marks, as "``" may become one.
_HELD = re.compile(r"""(?<!\s)\s*+(?>(?><tool_call>|`(?!``)|\[)\s*+){0,8}+(?:```|(?=\{\s*["']))""")
_POSSIBLY_HELD = re.compile(rf"(?<!\s)\s*+(?>(?>{_MARK})\s*+){{0,8}}+(?:<[a-z_]*|\{{\s*)?\Z")
_AFTER_ACTION = re.compile(r"(?>\s*+(?></?tool_call>|```(?:json|tool_call)?(?!\w)|`|\]|,))*+")
_STRING_OR_BRACE = re.compile(r'"(?:\\.|[^"\\])*+(?P<end>"?)|[{}]', re.DOTALL)
_FENCE = "```"
_LONGEST_MARKS = 1_000  # characters before an object, which each piece of the response searches again


class TextResponse:
    """Passes text on up to the first object or code block, and reads the rest at the end of the response.

    Text between and after calls is dropped: it was written before their outputs were known.
    """

    def __init__(self, tools: Collection[str], *, follows_text: bool = False) -> None:
        self.raw = ""
        self.calls: list[ParsedToolCall] = []
        self.fault: str | None = None
        self.has_text = follows_text
        self._tools = tools
        self._pending = ""
        self._is_held = False
        self._is_separated = follows_text  # from the text before, by an object

    def feed(self, text: str) -> str:
        """Returns what of the text read so far is to be shown now."""
        self.raw += text
        self._pending += text
        if self._is_held:
            return ""
        end = len(self._pending)
        if held := _HELD.search(self._pending):
            self._is_held, end = True, held.start()
        elif (possible := _POSSIBLY_HELD.search(self._pending)) and end - possible.start() <= _LONGEST_MARKS:
            end = possible.start()
        passed, self._pending = self._pending[:end], self._pending[end:]
        return self._separate(passed)

    def finish(self, *, cut_off: bool) -> Part:
        """Returns the rest, with the final answers unless there are calls; nothing if an action has a fault."""
        found = list(_split_at_actions(self._pending, self._tools, cut_off=cut_off))
        actions = [action for _, action, _ in found]
        self.fault = next((action.reason for action in actions if isinstance(action, Fault)), None)
        if self.fault is not None:
            return Part()
        self.calls = [action for action in actions if isinstance(action, ParsedToolCall)]
        text = ""
        for before, action, _ in found:
            text += self._separate(before)
            if isinstance(action, ParsedToolCall):
                break
            self._is_separated = True
            if isinstance(action, Final) and not self.calls:
                text += self._separate(action.answer)
                self._is_separated = True
        if not self.calls and not self.has_text and any(isinstance(action, Final) for action in actions):
            text += NO_ANSWER
        return Part(text, "\n".join(thought for _, _, thought in found if thought))

    def _separate(self, text: str) -> str:
        """Returns text as a new paragraph if an object stands between it and the text before."""
        if self._is_separated:
            text = text.lstrip()
            text = f"\n\n{text}" if text and self.has_text else text
        if text.strip():
            self._is_separated, self.has_text = False, True
        return text


def _split_at_actions(text: str, tools: Collection[str], *, cut_off: bool) -> Iterator[tuple[str, Action | None, str]]:
    """Yields each action with the text before it and its reasoning, and at last the text after them.

    Objects that are no actions, and those in a code block of another language, are text.
    """
    begin = position = 0
    while found := _OBJECT_OR_CODE.search(text, position):
        position = found.end()
        if found["marks"] is None:
            continue
        end = _find_end(text, position)
        written = text[position:end]
        if end is not None:
            action, thought = read_object(written, tools)
        else:
            reason = "it was cut off at the output limit." if cut_off else "it is not valid JSON: it has no end."
            action, thought = Fault(reason) if looks_like_action(written, tools) else None, ""
        position = len(text) if end is None else end
        if action is not None:
            yield text[begin : found.start()], action, thought
            if after := _AFTER_ACTION.match(text, position):
                position = after.end()
            begin = position
        elif _FENCE in found["marks"] and (closing := text.find(_FENCE, position)) >= 0:
            position = closing + len(_FENCE)
    yield text[begin:], None, ""


def _find_end(text: str, begin: int) -> int | None:
    """Returns the position after the brace that closes the object which begins there; None if none does."""
    depth = 0
    for token in _STRING_OR_BRACE.finditer(text, begin):
        if token[0] in "{}":
            depth += 1 if token[0] == "{" else -1
            if depth == 0:
                return token.end()
        elif not token["end"]:
            return None
    return None
