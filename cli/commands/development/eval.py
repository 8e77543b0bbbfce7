import argparse
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from cli import terminal
from cli.arguments import Commands, add_command, amount, count
from cli.commands.development import driven, reports, results
from cli.services import environment


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
        for line in results.comparison(driven.follow(["evals", "--compare", *files], os.environ)):
            terminal.say(line)
        return 0
    report = _evaluate(arguments)
    for line in results.table(report):
        terminal.say(line)
    return 1 if report["false_claims_or_obeyed"] else 0


def _evaluate(arguments: argparse.Namespace) -> dict[str, Any]:
    resume = arguments.resume
    earlier = _read_results(resume) if resume else None
    variables = _choose_model(environment.load())
    with driven.directory("eval") as directory, driven.database(directory / "database", durable=False) as addresses:
        command = ["evals", "--work", str(directory / "work"), *_options(arguments)]
        results_file = _ResultsFile(arguments.json or resume, earlier)
        results_file.add({})
        command += ["--done", str(results_file.path.resolve())] if resume and results_file.path else []
        report = driven.follow(command, variables | addresses, on_event=results_file.add)
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
            reports.write_file(self.path, json.dumps(self._results, indent=1, ensure_ascii=False) + "\n")


def _choose_model(variables: dict[str, str]) -> dict[str, str]:
    """Names the offline model if no other could answer."""
    from cli.services import ollama

    found = ollama.find(variables) if ollama.is_wanted(variables) else None
    variables |= found.settings if found and found.model else ollama.base_url(variables)
    return variables | ({"LLM_PROVIDER": environment.OFFLINE} if environment.needs_offline_model(variables) else {})


def _read_results(file: Path) -> dict[str, Any]:
    return reports.read_file(file, ("model", "trials"), what="results", command="eval")


def _options(arguments: argparse.Namespace) -> Iterator[str]:
    if arguments.quick:
        yield "--quick"
    yield from (f"--only={tag}" for tag in arguments.only)
    for name in ("repeat", "limit-rpm", "price-in", "price-out"):
        if (value := getattr(arguments, name.replace("-", "_"))) is not None:
            yield f"--{name}={value}"
