"""Markdown in a terminal, and how it is split while it is still written."""

import re
from typing import ClassVar

from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import CodeBlock, Heading, Markdown, MarkdownElement, TableElement
from rich.padding import Padding
from rich.syntax import Syntax
from rich.table import Table

from cli.terminal import clean

MAX_CHARS = 4_000
"""The longest text that is rendered at once, in some 0.1 s."""
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})[^\n]{0,100}\n")
_TABLE = re.compile(r"\|[^\n]{1,300}\n\|?[ :|-]{3,300}\n")


class _Heading(Heading):
    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        self.text.justify = "left"
        yield self.text


class _Code(CodeBlock):
    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        code = str(self.text).rstrip()
        syntax = Syntax(code, self.lexer_name, theme="ansi_dark", word_wrap=True, background_color="default")
        yield Padding(syntax, (0, 0, 0, 2))


class _Table(TableElement):
    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for table in super().__rich_console__(console, options):
            assert isinstance(table, Table)
            table.show_edge = False
            yield Padding(table, (0, 0, 0, 1))


class ChatMarkdown(Markdown):
    elements: ClassVar[dict[str, type[MarkdownElement]]] = {
        **Markdown.elements,
        "heading_open": _Heading,
        "fence": _Code,
        "code_block": _Code,
        "table_open": _Table,
    }

    def __init__(self, text: str) -> None:
        super().__init__(clean(text), hyperlinks=False)


def split_finished(text: str) -> tuple[str, str]:
    """Splits a growing Markdown text into the blocks that can no longer change, and the rest.

    A block of which only the first line has begun may yet become a part of the block before it. The first part is short
    enough to be rendered at once, and there is always one if the text is longer than that.
    """
    window = text if len(text) <= MAX_CHARS else text[: _find_end(text)]
    lines = window.split("\n")
    tokens = Markdown(window).parsed
    begins = [token.map[0] for token in tokens if token.level == 0 and token.map and token.nesting >= 0]
    begins = [begin for begin in begins if begin < len(lines) - 1]
    if len(begins) >= 2:
        finished = "\n".join(lines[: begins[-1]])
        return finished, text[len(finished) + 1 :]
    return ("", text) if window == text else _divide_block(window, text[len(window) :])


def _find_end(text: str) -> int:
    """Returns where a part ends that can be rendered at once: after a line or else a word, if possible."""
    return text.rfind("\n", 0, MAX_CHARS) + 1 or text.rfind(" ", 0, MAX_CHARS) + 1 or MAX_CHARS


def _divide_block(block: str, rest: str) -> tuple[str, str]:
    """Ends a block that is too long to be rendered at once; code and tables go on with their first lines."""
    if fence := _FENCE.match(block):
        return f"{block}{fence[1]}", f"{fence[0]}{rest}"
    table = _TABLE.match(block)
    return block, f"{table[0]}{rest}" if table else rest
