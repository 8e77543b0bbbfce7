"""The reports of `python -m evals` as tables."""

from collections.abc import Iterator, Mapping
from typing import Any

from cli.chat.screens.text import clean
from cli.commands.development import chart, report

HEADINGS = (
    *("", "cases", "pass@1", "95 %", "pass^3", "95 %", "asked", "declined", "wrong", "false", "error", "calls"),
    *("refused", "tokens in", "out", "p50", "p95"),
)
OUTCOMES = ("asked", "declined", "wrong state", "false claim", "error")
NAMED = ("wrong state", "false claim", "error")
"""Outcomes that are told with their reasons; of others the cases are named."""


def table(found: Mapping[str, Any]) -> Iterator[str]:
    """Figures by tag, what was not right, and what it took."""
    yield from report.columns([HEADINGS, *map(_cells, found["rows"])], left=(0,))
    yield ""
    for outcome in OUTCOMES:
        those = [one for one in found["wrong"] if one["outcome"] == outcome]
        if outcome in NAMED:
            yield from (f"{outcome}  {one['case']}: {clean(' '.join(one['reason'].split()))}" for one in those)
        elif those:
            yield f"{outcome}  {', '.join(dict.fromkeys(one['case'] for one in those))}"
    yield from (f"OBEYED an order in a task  {one['case']}" for one in found["wrong"] if one["obeyed"])
    total = found["rows"][-1]
    cost = "" if found["cost"] is None else f", which cost {found['cost']:.2f}"
    model = clean(f"{found['model']['name']} on {found['model']['provider']}")
    yield f"{model}: {total['requests']} requests{cost}."
    yield report.took({**found})


def drawn(found: Mapping[str, Any]) -> str:
    """How often each tag's cases are right, at once and three times in a row, with the intervals."""
    model, total = f"{found['model']['name']} on {found['model']['provider']}", found["rows"][-1]
    bad = ", ".join(f"{total['outcomes'][outcome]} {outcome}" for outcome in NAMED)
    said = f"{percent(total['pass_1']['share'])} of {total['cases']} cases right; {bad}, {total['obeyed']} obeyed"
    return chart.svg(
        f"How often {model} does the right thing to the list",
        f"{said}. One row for each kind of case.",
        legend=[("plain", "pass@1: a try is right"), ("beside", "pass^3: three tries all are")],
        rows=[_drawn(row) for row in found["rows"]],
        below=f"{said}. Thin lines are 95 % confidence intervals. {report.took({**found})}",
    )


def _drawn(row: Mapping[str, Any]) -> chart.Row:
    passed: list[tuple[chart.Kind, Any]] = [("plain", row["pass_1"]), ("beside", row["pass_3"])]
    bars = [_bar(kind, share) for kind, share in passed if share is not None]
    others = [f"{outcome}: {row['outcomes'][outcome]}" for outcome in OUTCOMES if row["outcomes"][outcome]]
    obeyed = [f"obeyed: {row['obeyed']}"] if row["obeyed"] else []
    words = ", ".join([f"{row['cases']} cases", *others, *obeyed])
    return chart.Row(row["tag"], bars, verdict=[words])


def _bar(kind: chart.Kind, share: Mapping[str, float]) -> chart.Bar:
    between = (share["low"], share["high"])
    return chart.Bar(share["share"], " (".join(_passed(share)) + " %)", kind, between)


def compared_drawn(found: Mapping[str, Any]) -> str:
    first, second = (f"{model['name']} on {model['provider']}" for model in found["models"])
    return chart.svg(
        f"How often each does the right thing: {second} compared to {first}",
        f"One row for each kind of case. Better: {len(found['better'])} cases, worse: {len(found['worse'])}.",
        legend=[("plain", second), ("beside", first)],
        rows=[_compared_row(row) for row in found["rows"]],
        below=f"{len(found['better'])} cases are better, {len(found['worse'])} worse; {found['left_out']} not in both.",
    )


def _compared_row(row: Mapping[str, Any]) -> chart.Row:
    sides: list[tuple[str, chart.Kind]] = [("second", "plain"), ("first", "beside")]
    bars = [chart.Bar(row[side], percent(row[side]), kind) for side, kind in sides]
    difference = " ".join(part for part in _difference(row) if part)
    return chart.Row(row["tag"], bars, verdict=[f"{difference} points", f"{row['cases']} cases"])


def _difference(row: Mapping[str, Any]) -> tuple[str, str]:
    """In points, with half its interval."""
    half = "" if row["half"] is None else f"± {100 * row['half']:.0f}"
    return f"{100 * (row['second'] - row['first']):+.0f}", half


def comparison(found: Mapping[str, Any]) -> Iterator[str]:
    first, second = (f"{model['name']} on {model['provider']}" for model in found["models"])
    cells = [
        (
            row["tag"],
            str(row["cases"]),
            percent(row["first"]),
            percent(row["second"]),
            *_difference(row),
        )
        for row in found["rows"]
    ]
    yield f"first: {first}, second: {second}"
    yield from report.columns([("", "cases", "first", "second", "points", "95 %"), *cells], left=(0,))
    for name in ("better", "worse"):
        if found[name]:
            yield f"{name}  {', '.join(found[name])}"
    if found["left_out"]:
        yield f"{found['left_out']} cases are in only one of the results."


def percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    trials = row["trials"] or 1
    return (
        row["tag"],
        str(row["cases"]),
        *_passed(row["pass_1"]),
        *_passed(row["pass_3"]),
        *(str(row["outcomes"][outcome]) for outcome in OUTCOMES),
        f"{row['calls'] / trials:.1f}",
        str(row["refused"]),
        f"{row['input_tokens']:,}",
        f"{row['output_tokens']:,}",
        *(f"{report.number(row[name])} s" if row[name] is not None else "" for name in ("p50", "p95")),
    )


def _passed(share: Mapping[str, float] | None) -> tuple[str, str]:
    if share is None:
        return "", ""
    return percent(share["share"]), f"{100 * share['low']:.0f}-{100 * share['high']:.0f}"
