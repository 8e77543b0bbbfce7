"""What may reach a terminal, and how much room it takes there. Nothing here is slow to import."""

from typing import Any

from cli.terminal import clean


def cells(text: str) -> int:
    """How many the text takes on one line."""
    from rich.cells import cell_len

    return cell_len(" ".join(clean(text).split()))


def one_line(text: Any, width: int) -> str:
    """The text on one line, cut to so many cells."""
    from rich.cells import cell_len, set_cell_size

    line = " ".join(clean(str(text)).split())
    return line if cell_len(line) <= width else f"{set_cell_size(line, max(width - 1, 0)).rstrip()}…"


def wrapped(text: str, width: int) -> list[str]:
    """The text's lines, none of them longer than so many cells; between words, where a word fits."""
    from rich.cells import cell_len, chop_cells

    lines: list[str] = []
    for paragraph in clean(text).split("\n"):
        line = ""
        for word in paragraph.split():
            if line and cell_len(line) + 1 + cell_len(word) > width:
                lines.append(line)
                line = ""
            *full, rest = chop_cells(word, width) or [""]
            lines += [line, *full] if full and line else full
            line = rest if full else f"{line} {word}".strip()
        lines.append(line)
    return lines


def padded(text: str, width: int) -> str:
    """Cut or filled to so many cells."""
    from rich.cells import set_cell_size

    return set_cell_size(one_line(text, width), width)


class Style:
    """Colours, where they are wanted."""

    def __init__(self, *, colour: bool) -> None:
        self.colour = colour

    def dim(self, text: str) -> str:
        return self._in("2", text)

    def bold(self, text: str) -> str:
        return self._in("1", text)

    def good(self, text: str) -> str:
        return self._in("32", text)

    def bad(self, text: str) -> str:
        return self._in("31", text)

    def marked(self, text: str) -> str:
        return self._in("36", text)

    def _in(self, code: str, text: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self.colour and text else text
