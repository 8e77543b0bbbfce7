"""Prints the figures of an evaluation, and the comparison of two."""

import shutil
import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

from bench.report import format_number
from cli.terminal import clean
from common.commands import format_table

RATES = ("", "cases", "pass@1", "95 %", "pass^3", "95 %", "calls", "p50", "p95")
COUNTS = ("", "asked", "declined", "wrong", "false", "error", "refused", "tokens in", "out")
OUTCOMES = ("asked", "declined", "wrong state", "false claim", "error")
NAMED = ("wrong state", "false claim", "error")
"""Outcomes that are listed with their reasons; of others the cases are named."""


def format_report(report: Mapping[str, Any], model: Mapping[str, str]) -> Iterator[str]:
    yield from format_table([RATES, *map(_render_rates, report["rows"])], left=(0,))
    yield ""
    yield from format_table([COUNTS, *map(_render_counts, report["rows"])], left=(0,))
    yield ""
    for outcome in OUTCOMES:
        those = [one for one in report["wrong"] if one["outcome"] == outcome]
        if outcome in NAMED:
            for one in those:
                yield from _wrap(f"{outcome}  {one['case']}: {clean(one['reason'])}")
        elif those:
            yield from _wrap(f"{outcome}  {', '.join(dict.fromkeys(one['case'] for one in those))}")
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
    yield from format_table([("", "cases", "first", "second", "points", "95 %"), *cells], left=(0,))
    for name in ("better", "worse"):
        if found[name]:
            yield from _wrap(f"{name}  {', '.join(found[name])}")
    if found["left_out"]:
        yield f"{found['left_out']} cases are in only one of the results."


def _name(model: Mapping[str, str]) -> str:
    return clean(f"{model['name']} on {model['provider']}")


def _format_percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _wrap(text: str) -> list[str]:
    """Returns lines that fit the terminal."""
    return textwrap.wrap(text, shutil.get_terminal_size().columns, subsequent_indent="  ", break_on_hyphens=False)


def _render_rates(row: Mapping[str, Any]) -> tuple[str, ...]:
    return (
        row["tag"],
        str(row["cases"]),
        *_format_passed(row["pass_1"]),
        *_format_passed(row["pass_3"]),
        f"{row['calls'] / row['trials']:.1f}",
        *(f"{format_number(row[name])} s" for name in ("p50", "p95")),
    )


def _render_counts(row: Mapping[str, Any]) -> tuple[str, ...]:
    outcomes = (str(row["outcomes"][outcome]) for outcome in OUTCOMES)
    return row["tag"], *outcomes, str(row["refused"]), f"{row['input_tokens']:,}", f"{row['output_tokens']:,}"


def _format_passed(share: Mapping[str, float] | None) -> tuple[str, str]:
    if share is None:
        return "", ""
    return _format_percent(share["share"]), f"{100 * share['low']:.0f}-{100 * share['high']:.0f}"
