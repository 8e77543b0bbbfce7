"""Renders output as a terminal shows it: without colours, and with only the last state of a progress bar."""

import re
import unicodedata
from collections.abc import Callable, Mapping

_ROWS, _COLUMNS = 24, 160  # that the cursor can reach by moving
_MAX_CELLS = 500_000  # in which moves to the right leave space: they could make far more than was written
_CONTROL = re.compile(
    r"(?:\x1b\[|\x9b)([0-?]{0,64})[ -/]{0,8}([@-~])"  # as for moves and colours
    r"|(?:\x1b[]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\|\x9c)?"  # strings, such as a window's title
    r"|\x1b[ -/]{0,8}[0-~]?"
    r"|[\x00-\x08\x0a-\x1a\x1c-\x1f\x7f-\x9f]"
)
_IS_SPECIAL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def render_screen(text: str) -> str:
    text = text.replace("\r\n", "\n")
    if not _IS_SPECIAL.search(text):
        return text
    screen, place = _Screen(), 0
    for match in _CONTROL.finditer(text):
        screen.write(text[place : match.start()])
        screen.control(match)
        place = match.end()
    screen.write(text[place:])
    return screen.text


class _Screen:
    """Holds all lines, of which the cursor can reach the last ones. After a wide sign, the next cell is empty."""

    def __init__(self) -> None:
        self._lines: list[list[str]] = [[]]
        self._row = self._column = self._cells = 0
        self._saved = (0, 0)

    @property
    def text(self) -> str:
        last = max(self._row, *(row for row, line in enumerate(self._lines) if line), 0)
        return "\n".join("".join(line) for line in self._lines[: last + 1])

    @property
    def _line(self) -> list[str]:
        return self._lines[self._row]

    @property
    def _top(self) -> int:
        return max(0, len(self._lines) - _ROWS)

    def write(self, text: str) -> None:
        if not text:
            return
        cells = list(text) if text.isascii() else _split_cells(text)
        if (missing := self._column - len(self._line)) > 0:
            self._cells += missing
            self._line.extend(" " * missing if self._cells < _MAX_CELLS else " ")
            self._column = len(self._line)
        self._line[self._column : self._column + len(cells)] = cells
        self._column += len(cells)

    def control(self, match: re.Match[str]) -> None:
        code, parameters, command = match[0], match[1], match[2]
        if command and (run := _COMMANDS.get(command)) and parameters[:1] not in ("<", "=", ">", "?"):
            run(self, [int(number[:4]) if number.isdecimal() else 0 for number in parameters.split(";")])
        elif code in ("\n", "\x0b", "\x0c"):
            self._row, self._column = self._row + 1, 0
            if self._row == len(self._lines):
                self._lines.append([])
        elif code == "\r":
            self._column = 0
        elif code == "\b":
            self._column = max(0, self._column - 1)
        elif code in ("\x1b7", "\x1b8"):
            (self.save if code == "\x1b7" else self.restore)([])
        elif code == "\x1bM":
            self.move_row(-1)

    def move_row(self, rows: int) -> None:
        self._row = min(max(self._row + rows, self._top), len(self._lines) - 1)

    def move_to_row(self, rows: int) -> None:
        self.move_row(rows)
        self._column = 0

    def move_column(self, column: int) -> None:
        self._column = min(max(column, 0), max(_COLUMNS, len(self._line)))

    def move_by(self, columns: int) -> None:
        self.move_column(self._column + columns)

    def move_to(self, numbers: list[int]) -> None:
        row, column = [*numbers, 1, 1][:2] if len(numbers) > 1 else (numbers[0], 1)
        self._row = self._top + min(max(row, 1), _ROWS) - 1
        self._lines.extend([] for _ in range(self._row + 1 - len(self._lines)))
        self.move_column(max(column, 1) - 1)

    def erase_line(self, numbers: list[int]) -> None:
        if numbers[0] == 0:
            del self._line[self._column :]
        elif numbers[0] == 1:
            self._line[: self._column + 1] = " " * min(self._column + 1, len(self._line))
        else:
            self._line.clear()

    def erase_screen(self, numbers: list[int]) -> None:
        first, last = {0: (self._row + 1, len(self._lines)), 1: (self._top, self._row)}.get(
            numbers[0], (self._top, len(self._lines))
        )
        for line in self._lines[first:last]:
            line.clear()
        if numbers[0] in (0, 1):
            self.erase_line(numbers)

    def erase_cells(self, numbers: list[int]) -> None:
        end = min(self._column + max(numbers[0], 1), len(self._line))
        self._line[self._column : end] = " " * max(0, end - self._column)

    def delete_cells(self, numbers: list[int]) -> None:
        del self._line[self._column : self._column + max(numbers[0], 1)]

    def save(self, _: list[int]) -> None:
        self._saved = (self._row, self._column)

    def restore(self, _: list[int]) -> None:
        row, column = self._saved
        self._row = min(max(row, self._top), len(self._lines) - 1)
        self.move_column(column)


_COMMANDS: Mapping[str, Callable[[_Screen, list[int]], None]] = {
    "A": lambda screen, numbers: screen.move_row(-max(numbers[0], 1)),
    "B": lambda screen, numbers: screen.move_row(max(numbers[0], 1)),
    "C": lambda screen, numbers: screen.move_by(max(numbers[0], 1)),
    "D": lambda screen, numbers: screen.move_by(-max(numbers[0], 1)),
    "E": lambda screen, numbers: screen.move_to_row(max(numbers[0], 1)),
    "F": lambda screen, numbers: screen.move_to_row(-max(numbers[0], 1)),
    "G": lambda screen, numbers: screen.move_column(max(numbers[0], 1) - 1),
    "H": _Screen.move_to,
    "f": _Screen.move_to,
    "J": _Screen.erase_screen,
    "K": _Screen.erase_line,
    "P": _Screen.delete_cells,
    "X": _Screen.erase_cells,
    "s": _Screen.save,
    "u": _Screen.restore,
}


def _split_cells(text: str) -> list[str]:
    cells: list[str] = []
    for c in text:
        if cells and (unicodedata.category(c) in ("Mn", "Me", "Cf")):
            cells[-1] += c  # of a wide sign, too: its empty cell is the last one
        else:
            cells += [c, ""] if unicodedata.east_asian_width(c) in "WF" else [c]
    return cells
