"""The reports of benchmark and evaluation: tables on the terminal, and files of JSON."""

import contextlib
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from cli.errors import CliError


def format_columns(cells: Sequence[Sequence[str]], *, left: Sequence[int]) -> Iterator[str]:
    """Yields the lines of a table; the columns named in `left` are aligned to the left."""
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for row in cells:
        padded = (
            text.ljust(width) if column in left else text.rjust(width)
            for column, (text, width) in enumerate(zip(row, widths, strict=True))
        )
        yield "  ".join(padded).rstrip()


def format_footer(report: Mapping[str, Any]) -> str:
    """Says how long a report took and on what machine."""
    machine = report["machine"]
    return f"{report['seconds']:.0f} seconds on {machine['cores']} cores, Python {machine['python']}."


def format_number(value: float | None) -> str:
    """Formats a number with three digits, or all digits before the point; None as nothing."""
    if value is None:
        return ""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def read_file(file: Path, fields: Collection[str], *, what: str, command: str) -> dict[str, Any]:
    """Reads what `./todo COMMAND --json FILE` wrote; raises `CliError` if a field is missing."""
    try:
        content = json.loads(file.read_text())
    except (OSError, ValueError):
        content = None
    if not isinstance(content, dict) or not set(fields) <= content.keys():
        raise CliError(f"{file} does not contain {what}. Create such a file with ./todo {command} --json FILE.")
    return content


def write_file(file: Path, text: str) -> None:
    """Writes a file as a whole or not at all."""
    with _fresh(file) as fresh:
        fresh.write_text(text)
        fresh.replace(file)


def check_writable(file: Path | None) -> None:
    """Checks, before work that takes minutes, that its result could be written there."""
    if file is not None:
        with _fresh(file) as fresh:
            fresh.touch()
            fresh.unlink()


@contextlib.contextmanager
def _fresh(file: Path) -> Iterator[Path]:
    try:
        yield file.with_name(f"{file.name}.new")
    except OSError as error:
        raise CliError(f"{file} cannot be written: {error.strerror}.") from error
