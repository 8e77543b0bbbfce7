"""Reads the rows of a CSV by the names in its header; spreadsheets change its separator."""

import csv
import io
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from mcp_server.imports.file_tasks import UnreadLine

_DELIMITERS = (",", ";", "\t")
_MAX_START = 10_000  # characters in which the header is looked for


@dataclass(frozen=True)
class Row:
    location: str
    cells: Mapping[str, str]
    """By the names of the columns."""

    def __getitem__(self, name: str) -> str:
        return self.cells.get(name, "").replace("\r\n", "\n").replace("\r", "\n").strip()

    @property
    def present(self) -> list[str]:
        return [name for name, cell in self.cells.items() if cell.strip()]


@dataclass(frozen=True)
class Header:
    delimiter: str
    records: int
    """How many records are above it."""
    names: tuple[str, ...]


def find_header(
    text: str, names: Collection[str], *, records: int = 1, normalize: Callable[[str], str] = str
) -> Header | None:
    """Finds a header with these names, as `normalize` returns them, within the first `records` records."""
    for delimiter in _DELIMITERS:
        reader = csv.reader(io.StringIO(text[:_MAX_START], newline=""), delimiter=delimiter)
        try:
            for number, cells in enumerate(islice(_skip_empty(reader), records)):
                header = tuple(normalize(cell.strip()) for cell in cells)
                if {*names} <= {*header}:
                    return Header(delimiter, number, header)
        except csv.Error:
            continue
    return None


def read_rows(text: str, header: Header) -> Iterator[Row | UnreadLine]:
    """Yields the rows below the header that are not empty, with the number of their first line."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=header.delimiter, strict=True)
    records = 0
    while True:
        first = reader.line_num + 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error:
            lines = f"lines {first} to {reader.line_num}" if reader.line_num > first else f"line {first}"
            yield UnreadLine(lines, "A quotation mark is in the wrong place, or a cell is too long. Correct it.")
            continue
        if not any(cell.strip() for cell in cells):
            continue
        if records > header.records:
            yield _create_row(f"line {first}", header.names, cells)
        records += 1


def _skip_empty(reader: Iterator[list[str]]) -> Iterator[list[str]]:
    return (cells for cells in reader if any(cell.strip() for cell in cells))


def _create_row(location: str, names: Sequence[str], cells: Sequence[str]) -> Row:
    """Cells without a name in the header are named by their number."""
    columns = [
        names[number] if names[number:] and names[number] else f"column {number + 1}" for number in range(len(cells))
    ]
    return Row(location, dict(zip(columns, cells, strict=True)))
