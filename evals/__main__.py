"""`./todo eval`: says all cases to the services on a temporary PostgreSQL, and judges by what is in the tables then.

The model is the one that the environment sets.
"""

import argparse
import asyncio
import json
import sys
import time
from pathlib import Path
from typing import Any

import psycopg

from bench.report import format_machine
from bench.services import temporary_database
from cli import data_dir, terminal
from cli.arguments import Parser, amount, count, run_command
from cli.database.postgres import Cluster
from cli.errors import CliError
from evals import case, figures, table, trial
from evals.case import Case
from evals.rows import Connection
from evals.stage import Stage, check_settings, set_up
from evals.trial import RequestLimit

AT_ONCE = 4
FRESH_SECONDS = 600  # after which the services begin again at their `now`: in some cases it is late in the evening


def _parse() -> argparse.Namespace:
    parser = Parser(
        prog="todo eval",
        description="Sends more than a hundred messages to the services, on a temporary PostgreSQL and with the model "
        "in your settings, and checks how each changed the list. Exit status 1: the model claimed something that it "
        "had not done, or obeyed an instruction in a task.",
        allow_abbrev=False,
    )
    parser.add_argument("--quick", action="store_true", help="thirty cases, once each")
    only = "only cases with this tag or id; can be repeated"
    parser.add_argument("--only", action="append", default=[], metavar="TAG", help=only)
    parser.add_argument("--repeat", type=count, metavar="K", help="how often to try each case (3, with --quick 1)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write each result to this file as it arrives")
    resume = "continue a run whose results --json wrote to this file"
    parser.add_argument("--resume", type=Path, metavar="FILE", help=resume)
    allowed = "how many requests a minute the provider allows"
    parser.add_argument("--limit-rpm", type=amount, metavar="N", help=allowed)
    compare = "compare two saved results instead of running"
    parser.add_argument("--compare", type=Path, nargs=2, metavar=("FILE", "OTHER"), help=compare)
    return parser.parse_args()


class Evaluation:
    """Trials of an earlier run that failed temporarily are repeated."""

    def __init__(self, arguments: argparse.Namespace, progress: terminal.Progress) -> None:
        self._arguments = arguments
        self._progress = progress
        self._request_limit = RequestLimit(arguments.limit_rpm)
        cases = case.select_cases(case.read_cases(), only=arguments.only, quick=arguments.quick)
        if not cases:
            raise CliError(f"No case has a tag or an id of {', '.join(arguments.only)}.")
        earlier = _read_results(arguments.resume) if arguments.resume else {"model": None, "trials": []}
        self.model = earlier["model"]
        self._file: Path | None = arguments.json or arguments.resume
        self._trials: list[dict[str, Any]] = [one for one in earlier["trials"] if not one["passing"]]
        had = {(one["case"], one["try"]) for one in self._trials}
        repeat = arguments.repeat or (1 if arguments.quick else 3)
        wanted = [(one, number) for number in range(1, repeat + 1) for one in cases]
        self._wanted = [(one, number) for one, number in wanted if (one.id, number) not in had]
        self._number = len(wanted)
        self._write()

    async def run(self, database: Cluster) -> dict[str, Any]:
        work = data_dir.logs(database.data_dir)
        with psycopg.connect(database.admin_url, autocommit=True) as connection:
            for now in sorted({one.now for one, _ in self._wanted}):
                left = [(one, number) for one, number in reversed(self._wanted) if one.now == now]
                while left:
                    async with set_up(work, database.url, now) as stage:
                        await self._check_model(stage)
                        await self._run_cases(left, stage, connection)
        report = figures.report(self._trials)
        self._write(report=report)
        return report

    async def _run_cases(self, left: list[tuple[Case, int]], stage: Stage, connection: Connection) -> None:
        """Until nothing is left, or the clock has gone on too far."""
        until = time.monotonic() + FRESH_SECONDS

        async def work() -> None:
            while left and time.monotonic() < until:
                one, number = left.pop()
                result = await trial.run(one, f"eval-{one.id}-{number}", stage, connection, self._request_limit)
                self._trials.append({**result, "try": number})
                self._write()
                right = sum(one["outcome"] == "right" for one in self._trials)
                self._progress.show(f"{right} of {len(self._trials)} right, of {self._number}: {one.id}")

        await asyncio.gather(*(work() for _ in range(1 if self._arguments.limit_rpm else AT_ONCE)))

    async def _check_model(self, stage: Stage) -> None:
        model = await stage.model()
        if self.model not in (None, model):
            raise CliError(f"The results to go on with are of {self.model['name']}, and this is {model['name']}.")
        self.model = model

    def _write(self, **more: Any) -> None:
        """Replaces the file of results, which is complete after each trial."""
        if self._file is None:
            return
        results = {"model": self.model, "trials": self._trials, **more}
        fresh = self._file.with_name(f"{self._file.name}.new")
        try:
            fresh.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n")
            fresh.replace(self._file)
        except OSError as error:
            raise CliError(f"{self._file} cannot be written: {error.strerror}.") from error


def _read_results(file: Path) -> dict[str, Any]:
    try:
        content = json.loads(file.read_text())
    except (OSError, ValueError):
        content = None
    if not isinstance(content, dict) or not {"model", "trials"} <= content.keys():
        raise CliError(f"{file} does not contain results. Create such a file with ./todo eval --json FILE.")
    return content


def main() -> int:
    arguments, began = _parse(), time.monotonic()
    if arguments.compare:
        first, second = map(_read_results, arguments.compare)
        lines = table.format_comparison(figures.compare(first, second))
        status = 0
    else:
        with terminal.Progress() as progress:
            progress.begin("starting the services")
            evaluation = Evaluation(arguments, progress)
            check_settings()
            with temporary_database(durable=False) as database:
                report = asyncio.run(evaluation.run(database))
        lines = (*table.format_report(report, evaluation.model), format_machine(time.monotonic() - began))
        status = 1 if report["false_claims_or_obeyed"] else 0
    for line in lines:
        terminal.say(line)
    return status


if __name__ == "__main__":
    sys.exit(run_command(main))
