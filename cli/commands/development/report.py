"""The report of `python -m bench` as a table."""

from collections.abc import Iterator
from typing import Any

HEADINGS = ("", "figure", "", "baseline", "", "ratio", "target", "")
LEFT = (0, 2, 4, 6, 7)  # columns of words
REACHED = {True: "reached", False: "MISSED", None: ""}


def table(report: dict[str, Any]) -> Iterator[str]:
    """Lines of text: the rows in columns, then what one should know about them."""
    cells = [HEADINGS, *map(_cells, report["rows"])]
    widths = [max(len(row[column]) for row in cells) for column in range(len(HEADINGS))]
    for row in cells:
        padded = (
            text.ljust(width) if column in LEFT else text.rjust(width)
            for column, (text, width) in enumerate(zip(row, widths, strict=True))
        )
        yield "  ".join(padded).rstrip()
    yield ""
    yield from report["notes"]
    machine = report["machine"]
    yield f"{report['seconds']:.0f} seconds on {machine['cores']} cores, Python {machine['python']}."


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    return (
        row["name"],
        number(row["figure"]),
        row["unit"],
        number(row["baseline"]),
        row["against"],
        number(row["ratio"]),
        row["target"] or "",
        REACHED[row["reached"]],
    )


def number(value: float | None) -> str:
    """Three digits, or all of them before the point."""
    if value is None:
        return ""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"
