"""Markdown in a terminal, and how it is split while it is still written."""

from typing import ClassVar

from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import CodeBlock, Heading, Markdown, MarkdownElement, TableElement
from rich.padding import Padding
from rich.syntax import Syntax
from rich.table import Table

from cli.terminal import clean


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

    A block of which only the first line has begun may yet become a part of the block before it.
    """
    lines = text.split("\n")
    tokens = Markdown(text).parsed
    begins = [token.map[0] for token in tokens if token.level == 0 and token.map and token.nesting >= 0]
    begins = [begin for begin in begins if begin < len(lines) - 1]
    if len(begins) < 2:
        return "", text
    return "\n".join(lines[: begins[-1]]), "\n".join(lines[begins[-1] :])
