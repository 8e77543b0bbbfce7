import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from cli import terminal
from cli.commands.development import driven, files, results
from cli.services import environment, ollama


class Options(NamedTuple):
    """What is tried; None for what is usual."""

    quick: bool
    only: Sequence[str]
    repeat: int | None
    limit_rpm: float | None


def run(
    *,
    options: Options,
    prices: Mapping[str, float | None],
    json_file: Path | None,
    resume: Path | None,
    compare: Sequence[Path] | None,
) -> int:
    """Runs the cases on a temporary PostgreSQL, with the model that `./todo up` would take, and prints a table.

    With files to `compare`, it runs nothing.
    """
    if compare:
        for file in compare:
            _with_results(file)
        found = driven.follow(["evals", "--compare", *(str(file.resolve()) for file in compare)], os.environ)
        for line in results.comparison(found):
            terminal.say(line)
        return 0
    report = _judged(options, prices, json_file, resume)
    for line in results.table(report):
        terminal.say(line)
    return 1 if report["false_claims_or_obeyed"] else 0


def _judged(
    options: Options, prices: Mapping[str, float | None], json_file: Path | None, resume: Path | None
) -> dict[str, Any]:
    begun = _with_results(resume) if resume else None
    variables = _with_model(environment.load())
    with driven.directory("eval") as directory, driven.database(directory / "database", durable=False) as addresses:
        command = ["evals", "--work", str(directory / "work"), *_arguments(options, prices)]
        kept = _Kept(json_file or resume, begun)
        kept.add({})
        command += ["--done", str(kept.file.resolve())] if resume and kept.file else []
        report = driven.follow(command, variables | addresses, told=kept.add)
    kept.add({"report": report})
    return report


class _Kept:
    """The results in a file, whole after each trial. Of those `begun` what failed for the moment is tried again."""

    def __init__(self, file: Path | None, begun: Mapping[str, Any] | None) -> None:
        self.file = file
        self._results: dict[str, Any] = {"model": None, "trials": [], **(begun or {})}
        self._results.pop("report", None)  # it was of those alone
        self._results["trials"] = [trial for trial in self._results["trials"] if not trial["passing"]]

    def add(self, told: Mapping[str, Any]) -> None:
        match told:
            case {"trial": trial}:
                self._results["trials"].append(trial)
            case _:
                self._results |= told
        if self.file is None:
            return
        files.write(self.file, json.dumps(self._results, indent=1, ensure_ascii=False) + "\n")


def _with_model(variables: dict[str, str]) -> dict[str, str]:
    """Naming the offline model where nobody else could answer."""
    found = ollama.find(variables) if ollama.is_wanted(variables) else None
    variables |= found.settings if found and found.model else ollama.base_url(variables)
    return variables | ({"LLM_PROVIDER": environment.OFFLINE} if environment.needs_offline_model(variables) else {})


def _with_results(file: Path) -> dict[str, Any]:
    return files.read(file, ("model", "trials"), what="results", command="eval")


def _arguments(options: Options, prices: Mapping[str, float | None]) -> Iterator[str]:
    if options.quick:
        yield "--quick"
    for tag in options.only:
        yield f"--only={tag}"
    if options.repeat is not None:
        yield f"--repeat={options.repeat}"
    if options.limit_rpm is not None:
        yield f"--limit-rpm={options.limit_rpm}"
    for name, price in prices.items():
        if price is not None:
            yield f"--price-{name}={price}"
