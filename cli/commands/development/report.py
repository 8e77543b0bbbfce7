"""Tables of a benchmark or an evaluation."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any


def columns(cells: Sequence[Sequence[str]], *, left: Sequence[int]) -> Iterator[str]:
    """Yields the lines of a table; the columns named in `left` are aligned to the left."""
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for row in cells:
        padded = (
            text.ljust(width) if column in left else text.rjust(width)
            for column, (text, width) in enumerate(zip(row, widths, strict=True))
        )
        yield "  ".join(padded).rstrip()


def footer(report: Mapping[str, Any]) -> str:
    """Says how long a report took and on what machine."""
    machine = report["machine"]
    return f"{report['seconds']:.0f} seconds on {machine['cores']} cores, Python {machine['python']}."


def number(value: float | None) -> str:
    """Formats a number with three digits, or all digits before the point; None as nothing."""
    if value is None:
        return ""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"
