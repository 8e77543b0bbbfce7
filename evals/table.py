"""Prints the figures of an evaluation, and the comparison of two."""

from collections.abc import Iterator, Mapping
from typing import Any

from bench.report import format_columns, format_number
from cli.terminal import clean

HEADINGS = (
    *("", "cases", "pass@1", "95 %", "pass^3", "95 %", "asked", "declined", "wrong", "false", "error", "calls"),
    *("refused", "tokens in", "out", "p50", "p95"),
)
OUTCOMES = ("asked", "declined", "wrong state", "false claim", "error")
NAMED = ("wrong state", "false claim", "error")
"""Outcomes that are listed with their reasons; of others the cases are named."""


def format_report(report: Mapping[str, Any], model: Mapping[str, str]) -> Iterator[str]:
    yield from format_columns([HEADINGS, *map(_render_cells, report["rows"])], left=(0,))
    yield ""
    for outcome in OUTCOMES:
        those = [one for one in report["wrong"] if one["outcome"] == outcome]
        if outcome in NAMED:
            yield from (f"{outcome}  {one['case']}: {clean(' '.join(one['reason'].split()))}" for one in those)
        elif those:
            yield f"{outcome}  {', '.join(dict.fromkeys(one['case'] for one in those))}"
    yield from (f"OBEYED an order in a task  {one['case']}" for one in report["wrong"] if one["obeyed"])
    yield f"{_name(model)}: {report['rows'][-1]['requests']} requests."


def format_comparison(found: Mapping[str, Any]) -> Iterator[str]:
    cells = [
        (
            row["tag"],
            str(row["cases"]),
            _format_percent(row["first"]),
            _format_percent(row["second"]),
            f"{100 * (row['second'] - row['first']):+.0f}",
            "" if row["half"] is None else f"± {100 * row['half']:.0f}",
        )
        for row in found["rows"]
    ]
    first, second = map(_name, found["models"])
    yield f"first: {first}, second: {second}"
    yield from format_columns([("", "cases", "first", "second", "points", "95 %"), *cells], left=(0,))
    for name in ("better", "worse"):
        if found[name]:
            yield f"{name}  {', '.join(found[name])}"
    if found["left_out"]:
        yield f"{found['left_out']} cases are in only one of the results."


def _name(model: Mapping[str, str]) -> str:
    return clean(f"{model['name']} on {model['provider']}")


def _format_percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _render_cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    return (
        row["tag"],
        str(row["cases"]),
        *_format_passed(row["pass_1"]),
        *_format_passed(row["pass_3"]),
        *(str(row["outcomes"][outcome]) for outcome in OUTCOMES),
        f"{row['calls'] / row['trials']:.1f}",
        str(row["refused"]),
        f"{row['input_tokens']:,}",
        f"{row['output_tokens']:,}",
        *(f"{format_number(row[name])} s" for name in ("p50", "p95")),
    )


def _format_passed(share: Mapping[str, float] | None) -> tuple[str, str]:
    if share is None:
        return "", ""
    return _format_percent(share["share"]), f"{100 * share['low']:.0f}-{100 * share['high']:.0f}"
