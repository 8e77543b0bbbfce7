import argparse
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from cli import terminal
from cli.arguments import Commands, add_command, amount, count
from cli.commands.development import measurement
from cli.services import environment
from cli.terminal import clean

HEADINGS = (
    *("", "cases", "pass@1", "95 %", "pass^3", "95 %", "asked", "declined", "wrong", "false", "error", "calls"),
    *("refused", "tokens in", "out", "p50", "p95"),
)
OUTCOMES = ("asked", "declined", "wrong state", "false claim", "error")
NAMED = ("wrong state", "false claim", "error")
"""Outcomes that are listed with their reasons; of others the cases are named."""


def add(commands: Commands) -> None:
    parser = add_command(
        commands,
        "eval",
        run,
        "measure how often the model changes the list correctly",
        "Sends more than a hundred messages to the services, on a temporary PostgreSQL and with the model in your "
        "settings, and checks how each changed the list. Exit status 1: the model claimed something that it had not "
        "done, or obeyed an instruction in a task.",
        has_data_dir=False,
    )
    parser.add_argument("--quick", action="store_true", help="thirty cases, once each")
    parser.add_argument(
        "--only", action="append", default=[], metavar="TAG", help="only cases with this tag or id; can be repeated"
    )
    parser.add_argument("--repeat", type=count, metavar="K", help="how often to try each case (3, with --quick 1)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write each result to this file as it arrives")
    parser.add_argument(
        "--resume", type=Path, metavar="FILE", help="continue a run whose results --json wrote to this file"
    )
    allowed = "how many requests a minute the provider allows"
    parser.add_argument("--limit-rpm", type=amount, metavar="N", help=allowed)
    for name, does in (("in", "reads"), ("out", "writes")):
        price = f"the price of a million tokens that the model {does}"
        parser.add_argument(f"--price-{name}", type=amount, metavar="N", help=price)
    parser.add_argument(
        "--compare", type=Path, nargs=2, metavar=("FILE", "OTHER"), help="compare two saved results instead of running"
    )


def run(arguments: argparse.Namespace) -> int:
    """Runs the cases on a temporary PostgreSQL, with the model that `./todo up` would take, and prints a table."""
    if arguments.compare:
        for file in arguments.compare:
            _read_results(file)
        files = (str(file.resolve()) for file in arguments.compare)
        for line in format_comparison(measurement.follow(["evals", "--compare", *files], os.environ)):
            terminal.say(line)
        return 0
    report = _evaluate(arguments)
    for line in format_table(report):
        terminal.say(line)
    return 1 if report["false_claims_or_obeyed"] else 0


def _evaluate(arguments: argparse.Namespace) -> dict[str, Any]:
    resume = arguments.resume
    earlier = _read_results(resume) if resume else None
    variables = _choose_model(environment.load())
    with (
        measurement.directory("eval") as directory,
        measurement.database(directory / "database", durable=False) as addresses,
    ):
        command = ["evals", "--work", str(directory / "work"), *_options(arguments)]
        results_file = _ResultsFile(arguments.json or resume, earlier)
        results_file.add({})
        command += ["--done", str(results_file.path.resolve())] if resume and results_file.path else []
        report = measurement.follow(command, variables | addresses, on_event=results_file.add)
    results_file.add({"report": report})
    return report


class _ResultsFile:
    """The results in a file, complete after each trial. Earlier ones that failed temporarily are repeated."""

    def __init__(self, path: Path | None, earlier: Mapping[str, Any] | None) -> None:
        self.path = path
        self._results: dict[str, Any] = {"model": None, "trials": [], **(earlier or {})}
        self._results.pop("report", None)  # it was of those alone
        self._results["trials"] = [trial for trial in self._results["trials"] if not trial["passing"]]

    def add(self, event: Mapping[str, Any]) -> None:
        match event:
            case {"trial": trial}:
                self._results["trials"].append(trial)
            case _:
                self._results |= event
        if self.path is not None:
            measurement.write_file(self.path, json.dumps(self._results, indent=1, ensure_ascii=False) + "\n")


def _choose_model(variables: dict[str, str]) -> dict[str, str]:
    """Names the offline model if no other could answer."""
    from cli.services import ollama

    found = ollama.find(variables) if ollama.is_wanted(variables) else None
    variables |= found.settings if found and found.model else ollama.base_url(variables)
    return variables | ({"LLM_PROVIDER": environment.OFFLINE} if environment.needs_offline_model(variables) else {})


def _read_results(file: Path) -> dict[str, Any]:
    return measurement.read_file(file, ("model", "trials"), what="results", command="eval")


def _options(arguments: argparse.Namespace) -> Iterator[str]:
    if arguments.quick:
        yield "--quick"
    yield from (f"--only={tag}" for tag in arguments.only)
    for name in ("repeat", "limit-rpm", "price-in", "price-out"):
        if (value := getattr(arguments, name.replace("-", "_"))) is not None:
            yield f"--{name}={value}"


def format_table(found: Mapping[str, Any]) -> Iterator[str]:
    """Figures by tag, what was not right, and what it took."""
    yield from measurement.format_columns([HEADINGS, *map(_cells, found["rows"])], left=(0,))
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
    yield measurement.format_footer(found)


def _difference(row: Mapping[str, Any]) -> tuple[str, str]:
    """In points, with half its interval."""
    half = "" if row["half"] is None else f"± {100 * row['half']:.0f}"
    return f"{100 * (row['second'] - row['first']):+.0f}", half


def format_comparison(found: Mapping[str, Any]) -> Iterator[str]:
    first, second = (f"{model['name']} on {model['provider']}" for model in found["models"])
    cells = [
        (
            row["tag"],
            str(row["cases"]),
            _percent(row["first"]),
            _percent(row["second"]),
            *_difference(row),
        )
        for row in found["rows"]
    ]
    yield f"first: {first}, second: {second}"
    yield from measurement.format_columns([("", "cases", "first", "second", "points", "95 %"), *cells], left=(0,))
    for name in ("better", "worse"):
        if found[name]:
            yield f"{name}  {', '.join(found[name])}"
    if found["left_out"]:
        yield f"{found['left_out']} cases are in only one of the results."


def _percent(share: float) -> str:
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
        *(f"{measurement.format_number(row[name])} s" if row[name] is not None else "" for name in ("p50", "p95")),
    )


def _passed(share: Mapping[str, float] | None) -> tuple[str, str]:
    if share is None:
        return "", ""
    return _percent(share["share"]), f"{100 * share['low']:.0f}-{100 * share['high']:.0f}"
