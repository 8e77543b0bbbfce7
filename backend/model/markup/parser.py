"""Divides what a model writes into text, reasoning and calls, however it is cut into pieces."""

import re

from backend.model.markup import calls, markers
from backend.model.markup.calls import CutCall, Tools
from backend.model.markup.families import CallBlock, Thought
from backend.model.markup.quoting import Quotable, Quoting
from backend.model.tool_calls import ParsedToolCall

# A hostile text may open blocks that hold no calls: after so many, and closings within a call, all is text.
_MAX_REJECTED, _MAX_CLOSINGS = 20, 20
_MAX_HELD_CHARS = 1_000  # of spaces behind a token that ends the turn
_TURN_OF_MODEL = re.compile(r"\s*(?:(?:assistant|model)(?!\w))?\s*(?:<\|(?:end_header_id|header_end|im_sep)\|>)?\s*")
_MAX_TURN_CHARS = 50
_CLEARLY_BEGUN = re.compile(r"<[|｜]|<[a-z_:]{0,20}(?:tool_|function=|invoke )|\[TOOL_", re.IGNORECASE)
_SENTENCE_ENDS = ".!?…。！？"
_SENTENCE = re.compile(r"[A-Z\d\"'“(*]")
_Parts = tuple[list[str], list[str]]


class MarkupParser:
    """Reads one text of a response, or with `is_thought` its reasoning.

    A thought in a tag begins at the start of the text or right after another thought: elsewhere the tag is text. The
    chat template of some models writes the opening tag into the prompt, so that only the closing one is sent. With
    `begins_thinking`, the text is taken to begin with reasoning; without, what was sent before the closing tag has been
    shown as text and stays it, and `lacks_opening` is set.

    A call is markup around the name of one of the `tools`. It is not shown, and neither is text after it, which was
    written before its output was known. `drafts` are calls at the end of reasoning. Markup is text in code and in
    quotation marks, and where it is `quotable`.
    """

    def __init__(
        self,
        tools: Tools,
        *,
        quotable: Quotable | None = None,
        begins_thinking: bool = False,
        is_thought: bool = False,
    ) -> None:
        self.calls: list[ParsedToolCall] = []
        self.drafts: list[ParsedToolCall] = []
        self.lacks_opening = self.has_closed = self.is_cut = False
        self._tools, self._quotable = tools, quotable or Quotable(())
        self._pending = ""
        self._parts: _Parts = ([], [])  # of the text, and of the thought
        self._is_thinking = begins_thinking or is_thought
        self._thought = markers.UNOPENED if begins_thinking else None
        self._unopened: list[str] | None = [] if begins_thinking else None
        self._may_open, self._begins_part = not is_thought, False
        self._text_quoting, self._thought_quoting = Quoting(), Quoting()
        self._block: CallBlock | None = None
        self._searched = self._closings = self._rejected = 0
        # Whether markup was read, whether some was text, and whether a token ended the turn.
        self._has_markup = self._has_mention = self._has_ended = False
        self._has_call = self._is_over = self._is_last = False

    def feed(self, text: str) -> tuple[str, str]:
        """Returns what is known to be text and what is known to be reasoning now."""
        self._pending += text
        while self._pending and self._advance():
            pass
        return self._take_parts()

    def finish(self, *, is_whole: bool = True) -> tuple[str, str]:
        """Returns the rest, at the end of the text. Reasoning that was neither opened nor closed is the text.

        A text may end within a call: then the call's arguments are not valid JSON, or it is left out if its name is not
        known, and `is_cut` is set. In one that `is_whole`, only the closing tags may be missing.
        """
        self._is_last = True
        while self._pending:
            if self._block is not None:
                self._finish_block(self._block, is_whole=is_whole)
            elif not self._advance():
                break
        text, thought = self._take_parts()
        if self._unopened is not None:
            self.calls, self.drafts = [*self.calls, *self.drafts], []
            return text + "".join(self._unopened), ""
        self.drafts = self.drafts if is_whole else []
        return text, thought

    @property
    def has_text(self) -> bool:
        return self._text_quoting.has_text

    @property
    def _quoting(self) -> Quoting:
        return self._thought_quoting if self._is_thinking else self._text_quoting

    def _take_parts(self) -> tuple[str, str]:
        (texts, thoughts), self._parts = self._parts, ([], [])
        text, thought = "".join(texts), "".join(thoughts)
        return text, thought

    def _emit(self, text: str) -> None:
        if self._begins_part:
            text = text.lstrip()
        if not text or (self.calls and not self._is_thinking):
            return
        if self._begins_part and not self._is_thinking and self.has_text:
            text = f"\n\n{text}"
        self._begins_part = False
        self._quoting.read(text)
        if text.strip():
            self.drafts = []
        self._parts[self._is_thinking].append(text)
        if self._is_thinking and self._unopened is not None:
            self._unopened.append(text)

    def _emit_pending(self, chars: int) -> bool:
        text, self._pending = self._pending[:chars], self._pending[chars:]
        self._emit(text)
        return True

    def _emit_all(self, more: tuple[str, ...] = ()) -> bool:
        """Emits what is pending, but for an end that may be the beginning of a marker."""
        self._emit_pending(markers.find_beginning(self._pending, more))
        if self._is_last:
            is_markup = self._begins_part or _CLEARLY_BEGUN.match(self._pending) is not None
            self._emit("" if is_markup and not self._is_quoted else self._pending)
            self._pending = ""
        return False

    @property
    def _is_quoted(self) -> bool:
        return self._quoting.is_in_block or self._quoting.is_in_line

    def _advance(self) -> bool:
        """Reads a part of what is pending; returns false if more must come first."""
        if self._is_over:
            self._pending = ""
        elif self._block is not None:
            return self._read_block(self._block)
        elif self._may_open and (opened := self._open_thought()) is not None:
            return opened
        elif self._is_thinking:
            return self._read_thought()
        elif found := markers.IN_TEXT.search(self._pending):
            self._emit_pending(found.start())
            return self._read_marker(found[0])
        else:
            return self._emit_all()
        return False

    def _open_thought(self) -> bool | None:
        """Opens a thought at the start of the text or after another; returns None if there is none."""
        start = self._pending.lstrip()
        if self.has_closed:
            self._pending = start
        if not self._is_last and (not start or markers.is_beginning(start)):
            return False
        self._may_open = False
        opening = markers.BEFORE_TEXT.match(start)
        thought = markers.marker_of(opening[0]).row if opening else None
        if opening is None or not isinstance(thought, Thought):
            return None
        if thought.is_word and not _SENTENCE.match(start, opening.end()):
            return None
        return self._begin_thought(thought, start[opening.end() :])

    def _begin_thought(self, thought: Thought, rest: str) -> bool:
        self._pending, self._thought, self._unopened = rest, thought, None
        self._is_thinking = self._begins_part = self._has_markup = self._may_open = True
        self._thought_quoting = Quoting()
        return True

    def _end_thought(self, rest: str) -> bool:
        self.lacks_opening = self._unopened is not None
        self._pending, self._thought, self._unopened = rest.lstrip(), None, None
        self._is_thinking, self._begins_part = False, self.has_text
        self._may_open = self.has_closed = self._has_markup = True
        return True

    def _read_thought(self) -> bool:
        thought = self._thought
        found = markers.in_thought(thought).search(self._pending)
        if found is None:
            return self._emit_all(thought.closings + thought.before if thought else ())
        self._emit_pending(found.start())
        if thought is not None and found[0].lower() in thought.closings:
            return self._end_thought(self._pending[len(found[0]) :])
        if thought is not None and self._pending.lower().startswith(thought.before):
            return self._end_thought(self._pending)
        return self._read_marker(found[0])

    def _read_marker(self, text: str) -> bool:
        """Reads the marker that what is pending begins with."""
        if not self._is_last and markers.is_beginning(self._pending):
            return False
        marker = markers.marker_of(text)
        self._has_call = self._has_call or marker.kind == "call"
        match marker.kind, marker.row:
            case "closing", _ if marker.row is markers.TAGS:
                return self._read_closing(len(text))
            case "end" | "stray", _ if not self._quoting.is_in_line and (marker.kind == "end" or not self._has_call):
                return self._read_end(len(text))
            case _ if self._is_quoted or (text[0].isalpha() and self._quoting.last.isalnum()):
                pass
            case "call", CallBlock() as block if self._tools and self._rejected < _MAX_REJECTED:
                self._block, self._searched, self._closings = block, 0, 0
                return True
            case "thought", Thought(anywhere=True) as thought:
                return self._begin_thought(thought, self._pending[len(text) :])
            case "closing", _:
                self.lacks_opening, self.has_closed = not self.has_closed, True
                return self._leave_out(len(text))
            case "turn", _:
                return self._read_turn(len(text))
            case "noise", _ if self._is_markup(self._pending[len(text) :]):
                return self._leave_out(len(text))
            case "wrap", _:
                return self._leave_out(len(text))
            case _:
                pass
        return self._mention(len(text))

    def _mention(self, chars: int) -> bool:
        self._has_mention = self._has_mention or not self._is_quoted
        return self._emit_pending(chars)

    def _leave_out(self, chars: int) -> bool:
        self._pending = self._pending[chars:]
        self._has_markup = True
        self._may_open = not self._is_thinking and not self.has_text
        return True

    def _is_markup(self, rest: str) -> bool:
        """Whether a token is one of the model's, by what comes before and behind it, rather than a word about it."""
        if self._has_markup or not self._quoting.has_text:
            return True
        return not self._has_mention and markers.IN_TEXT.match(rest.lstrip()) is not None

    def _read_closing(self, chars: int) -> bool:
        """Reads a closing tag whose opening one was not sent, or that is text."""
        last, after = self._quoting.last, self._pending[chars:]
        is_alone = last in ("", "\n") or (last in _SENTENCE_ENDS and after[:1].isalnum())
        if self.has_closed or (not is_alone and after and after[0] != "\n"):
            return self._mention(chars)  # in the middle of a line, as in a text about tags
        if not is_alone and not after:
            return self._is_last and self._mention(chars)
        self._pending, self._may_open = after, not last
        self.lacks_opening = self.has_closed = True
        return True

    def _read_end(self, chars: int) -> bool:
        rest = self._pending[chars:]
        following = rest.lstrip()
        may_go_on = not following or markers.is_beginning(following)
        if self._is_last and may_go_on and not self._has_mention:
            self._pending = ""
            return True
        if not self._is_last and may_go_on and len(rest) < _MAX_HELD_CHARS:
            return False
        if self._has_mention or self._is_quoted or not following or not self._is_markup(rest):
            return self._mention(chars)
        self._has_ended, self._begins_part = True, self.has_text
        return self._leave_out(chars)

    def _read_turn(self, chars: int) -> bool:
        """Reads the beginning of a turn: its name is left out before an answer, and all after one."""
        rest = self._pending[chars:]
        if not self.has_text:
            if not self._is_last and len(rest) < _MAX_TURN_CHARS:
                return False
            name = _TURN_OF_MODEL.match(rest)
            return self._leave_out(chars + (name.end() if name else 0))
        if self._has_mention or not (self._has_ended or self._quoting.last == "\n"):
            return self._mention(chars)
        self._is_over = True
        return True

    def _read_block(self, block: CallBlock) -> bool:
        begin = 0 if block.keeps_opening else len(block.opening)
        if not calls.may_begin(self._pending[begin:], self._tools):
            return self._reject(block)
        closing = markers.closing_of(block).search(self._pending, max(self._searched, len(block.opening)))
        if closing is None:
            self._searched = max(self._searched, len(self._pending) - markers.MAX_CHARS)
            return False
        try:
            found = calls.read_calls(self._pending[begin : closing.start()], self._tools, is_whole=True)
        except CutCall:  # a value has the closing in it
            self._searched, self._closings = closing.end(), self._closings + 1
            return True if self._closings < _MAX_CLOSINGS else self._reject(block)
        return self._take_calls(block, found, closing.start(), closing.end())

    def _finish_block(self, block: CallBlock, *, is_whole: bool) -> None:
        begin, end = 0 if block.keeps_opening else len(block.opening), len(self._pending)
        try:
            found = calls.read_calls(self._pending[begin:], self._tools, is_whole=is_whole)
        except CutCall as error:
            found, is_cut = error.calls, True
        else:
            is_cut = not found and self._is_clearly_begun(block)
        if not is_cut:
            self._take_calls(block, found, end, end)
            return
        if (not self._is_thinking or self._unopened is not None) and self._pending not in self._quotable:
            self.calls += found
        self.is_cut, self._pending, self._block = True, "", None

    def _is_clearly_begun(self, block: CallBlock) -> bool:
        """Whether markup without a call, at the end of the text, is none that the text is about."""
        is_token = _CLEARLY_BEGUN.match(block.opening[:2]) is not None
        is_alone = self._quoting.last in ("", "\n") or self._has_markup or len(self._pending) > len(block.opening)
        return not self._has_mention and (is_token or is_alone)

    def _take_calls(self, block: CallBlock, found: list[ParsedToolCall], end: int, after: int) -> bool:
        if not found or self._pending[:end] in self._quotable:
            return self._reject(block)
        (self.drafts if self._is_thinking else self.calls).extend(found)
        self._pending, self._block, self._has_markup = self._pending[after:], None, True
        return True

    def _reject(self, block: CallBlock) -> bool:
        self._block, self._rejected = None, self._rejected + 1
        return self._mention(len(block.opening))
