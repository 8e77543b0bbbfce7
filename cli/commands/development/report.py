"""The report of `python -m bench` as a table, and how any table is written."""

from collections.abc import Iterator, Sequence
from typing import Any

from cli.commands.development import chart

HEADINGS = ("", "figure", "", "baseline", "", "ratio", "target", "")
LEFT = (0, 2, 4, 6, 7)  # columns of words
REACHED = {True: "reached", False: "MISSED", None: ""}
KINDS: dict[bool | None, chart.Kind] = {True: "good", False: "bad", None: "plain"}
LEGEND: Sequence[tuple[chart.Kind, str]] = (
    ("plain", "measured"),
    ("good", "reached its target"),
    ("bad", "missed it"),
    ("beside", "what it is compared to"),
)


def table(report: dict[str, Any]) -> Iterator[str]:
    """Lines of text: the rows in columns, then what one should know about them."""
    yield from columns([HEADINGS, *map(_cells, report["rows"])], left=LEFT)
    yield ""
    yield from report["notes"]
    yield took(report)


def drawn(report: dict[str, Any]) -> str:
    """The rows as a chart; each is as wide as the largest of its figure, its baseline and its target."""
    verdicts = [row["reached"] for row in report["rows"]]
    reached = f"{verdicts.count(True)} of {len(verdicts) - verdicts.count(None)} targets were reached"
    missed = [row["name"] for row in report["rows"] if row["reached"] is False]
    return chart.svg(
        "How fast it is, row by row: a bar for what was measured, one for what it is compared to, a mark at the target",
        f"{reached}{'' if not missed else '; missed: ' + ', '.join(missed)}. Each row has its own scale.",
        legend=LEGEND,
        rows=[_drawn(row) for row in report["rows"]],
        below=f"{reached}. {' '.join(report['notes'])} {took(report)}",
    )


def _drawn(row: dict[str, Any]) -> chart.Row:
    figure, baseline, target = row["figure"], row["baseline"], _bound(row)
    widest = max(figure, baseline or 0, target or 0)
    comparable = widest > 0 and not (baseline is None and target is None)

    def bar(value: float, words: str, kind: chart.Kind) -> chart.Bar:
        return chart.Bar(value / widest if comparable else None, f"{number(value)} {row['unit']} {words}".strip(), kind)

    bars = [bar(figure, "", KINDS[row["reached"]])]
    if baseline is not None:
        bars.append(bar(baseline, row["against"], "beside"))
    ratio = [] if row["ratio"] is None else [f"{number(row['ratio'])} times"]
    verdict = [f"{row['target']}, {REACHED[row['reached']]}"] if row["target"] else []
    return chart.Row(row["name"], bars, target / widest if target and comparable else None, [*ratio, *verdict])


def _bound(row: dict[str, Any]) -> float | None:
    """Where the target is, in the figure's own unit."""
    if row["target"] is None:
        return None
    of, _, bound = row["target"].split()
    return float(bound) if of == "figure" else float(bound) * (row["baseline"] or 0)


def columns(cells: Sequence[Sequence[str]], *, left: Sequence[int]) -> Iterator[str]:
    """Lines of text; the columns that are named begin at the left."""
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for row in cells:
        padded = (
            text.ljust(width) if column in left else text.rjust(width)
            for column, (text, width) in enumerate(zip(row, widths, strict=True))
        )
        yield "  ".join(padded).rstrip()


def took(report: dict[str, Any]) -> str:
    machine = report["machine"]
    return f"{report['seconds']:.0f} seconds on {machine['cores']} cores, Python {machine['python']}."


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
