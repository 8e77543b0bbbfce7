"""Markdown as it grows: blocks that are finished are drawn once, the one that is open again and again."""

import io
import re
import time
from itertools import pairwise
from typing import ClassVar

from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import CodeBlock, Heading, Markdown, MarkdownElement
from rich.padding import Padding
from rich.syntax import Syntax
from rich.theme import Theme

from cli.chat.screens.text import clean

_THEME = Theme({"markdown.code": "cyan"})
_ESCAPES = re.compile(r"(\x1b\[[0-9;]*m)")
_WITH_GAPS = ("bullet_list_open", "ordered_list_open", "code_block", "html_block")
_TRAILING = re.compile(r"((?:\x1b\[[0-9;]*m)|[ ])+$")


class _Heading(Heading):
    """On the left, without a frame."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        self.text.justify = "left"
        yield self.text


class _Code(CodeBlock):
    """On the terminal's own ground, a little to the right."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        code = str(self.text).rstrip()
        drawn = Syntax(code, self.lexer_name, theme="ansi_dark", word_wrap=True, background_color="default")
        yield Padding(drawn, (0, 0, 0, 2))


class _Markdown(Markdown):
    elements: ClassVar[dict[str, type[MarkdownElement]]] = {
        **Markdown.elements,
        "heading_open": _Heading,
        "fence": _Code,
        "code_block": _Code,
    }


def drawn(text: str, *, width: int, colour: bool) -> list[str]:
    """The lines of a Markdown text, its blocks an empty line apart; nothing in it is obeyed by the terminal."""
    text = clean(text)
    lines, begins = text.split("\n"), _begins(text)
    blocks = ["\n".join(lines[begin:end]) for begin, end in pairwise([*begins, len(lines)])]
    shown = [told for block in blocks if (told := _block(block, width=width, colour=colour))]
    return [line for block in shown for line in ("", *block)][1:]


def _begins(text: str) -> list[int]:
    """The lines that blocks begin with."""
    return [begin for begin, _ in _blocks(text)]


def _blocks(text: str) -> list[tuple[int, str]]:
    """The lines that blocks begin with, and what they are."""
    parsed = Markdown(text).parsed
    return [(token.map[0], token.type) for token in parsed if token.level == 0 and token.map and token.nesting >= 0]


def _block(text: str, *, width: int, colour: bool) -> list[str]:
    page = io.StringIO()
    console = Console(
        file=page,
        width=max(width, 20),
        force_terminal=colour,
        color_system="standard" if colour else None,
        legacy_windows=False,
        highlight=False,
        emoji=False,
        theme=_THEME,
    )
    console.print(_Markdown(text, hyperlinks=False))
    lines = [_without_trailing(_cleaned(line)) for line in page.getvalue().split("\n")]
    shown = [number for number, line in enumerate(lines) if line]
    return lines[shown[0] : shown[-1] + 1] if shown else []


def _cleaned(line: str) -> str:
    """Without what Markdown wrote as an entity, which is a character only here; our own colours stay."""
    return "".join(part if _ESCAPES.fullmatch(part) else clean(part) for part in _ESCAPES.split(line))


def _without_trailing(line: str) -> str:
    bare = _TRAILING.sub("", line)
    visible = _ESCAPES.sub("", bare)
    return "" if not visible else f"{bare}\x1b[0m" if visible != bare else bare


def _may_go_on(lines: list[str], before: tuple[int, str], last: tuple[int, str]) -> bool:
    """Whether the last block may turn out to be part of the one before: nothing else goes on behind an empty line."""
    begin, _ = last
    return before[1] in _WITH_GAPS or bool(begin and lines[begin - 1].strip())


class Growing:
    """A text that comes in pieces. What has been taken of it is drawn, and does not come again."""

    def __init__(self) -> None:
        self._open = ""
        self._begun = False
        self.cost = 0.0
        """How many seconds the open block took to draw the last time."""

    def add(self, piece: str) -> None:
        self._open += piece

    def set_apart(self) -> None:
        """Something else stands above what follows: an empty line comes between."""
        self._begun = True

    @property
    def is_open(self) -> bool:
        return bool(self._open.strip())

    def finished(self, *, width: int, colour: bool) -> list[str]:
        """The lines of the blocks that nothing can change any more."""
        lines, blocks = self._open.split("\n"), _blocks(self._open)
        # The last line may yet become anything, even what goes on with the block before it, where that can have gaps.
        while blocks and blocks[-1][0] == len(lines) - 1 and (len(blocks) < 2 or _may_go_on(lines, *blocks[-2:])):
            blocks.pop()
        if len(blocks) < 2:
            return []
        begin, _ = blocks[-1]
        done, self._open = "\n".join(lines[:begin]), "\n".join(lines[begin:])
        return self._apart(drawn(done, width=width, colour=colour))

    def rest(self, *, width: int, colour: bool) -> list[str]:
        """The lines of all that is left; another text may follow."""
        left, self._open = self._open, ""
        lines = self._apart(drawn(left, width=width, colour=colour)) if left.strip() else []
        self._begun = False
        return lines

    def open_lines(self, *, width: int, colour: bool) -> list[str]:
        """The block that is open, as it looks now."""
        if not self.is_open:
            return []
        began = time.perf_counter()
        lines = drawn(self._open, width=width, colour=colour)
        self.cost = time.perf_counter() - began
        return ["", *lines] if self._begun else lines

    def _apart(self, lines: list[str]) -> list[str]:
        """Blocks have an empty line between them; one that tells nothing, as where a link leads, has none."""
        apart = ["", *lines] if self._begun and lines else lines
        self._begun = self._begun or bool(lines)
        return apart
